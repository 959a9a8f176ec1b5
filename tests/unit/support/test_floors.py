import json
import os
import subprocess
import sys

import floors
import pytest

GENERATIONS = 3
FORKS = f"""
import os
import slipway.pipeline.exit_codes

def live(generations):
    if generations and not (child := os.fork()):
        live(generations - 1)
        os._exit(0)
    if generations:
        os.waitpid(child, 0)

live({GENERATIONS})
"""


@pytest.fixture(autouse=True)
def no_summary(monkeypatch):
    """On GitHub, nothing of these tests belongs on the run's own page."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def found(**files):
    """A report of coverage.py: file -> (lines run, lines, branches taken, branches)."""
    names = ("covered_lines", "num_statements", "covered_branches", "num_branches")
    return {
        "files": {
            file.replace("__", "/") + ".py": {"summary": dict(zip(names, counts, strict=True))}
            for file, counts in files.items()
        }
    }


def test_share_is_of_lines_and_branches_together():
    report = found(pipeline__dag=(8, 10, 1, 2), pipeline__errors=(4, 4, 0, 0))
    told = floors.shares(report, {"slipway.pipeline": 50})
    assert told == {"slipway.pipeline": pytest.approx(100 * 13 / 16)}


def test_module_counts_for_the_longest_package_that_holds_it():
    report = found(components__ingest__options=(1, 2, 0, 0), components__errors=(3, 3, 0, 0))
    told = floors.shares(report, {"slipway.components": 90, "slipway.components.ingest": 40})
    assert told == {"slipway.components": 100, "slipway.components.ingest": 50}


def test_module_without_a_floor_is_refused():
    with pytest.raises(KeyError, match=r"slipway\.schemas\.artifacts is in no package that has a floor"):
        floors.shares(found(schemas__artifacts=(1, 1, 0, 0)), {"slipway.pipeline": 50})


@pytest.mark.parametrize(("floor", "code", "word"), [(80, 0, ""), (82, 1, "BELOW ITS FLOOR")])
def test_package_below_its_floor_fails_and_is_named(floor, code, word, tmp_path, monkeypatch, capsys):
    (tmp_path / "report.json").write_text(json.dumps(found(pipeline__dag=(8, 10, 1, 1))))
    monkeypatch.setattr(floors, "FLOORS", {"slipway.pipeline": floor})
    monkeypatch.setattr("sys.argv", ["floors", str(tmp_path / "report.json")])
    assert floors.main() == code
    assert capsys.readouterr().out.rstrip().endswith(word or "pipeline")


def test_coverage_is_shown_on_the_summary_of_a_run_on_github(tmp_path, monkeypatch, capsys):
    (tmp_path / "report.json").write_text(json.dumps(found(pipeline__dag=(8, 10, 1, 1))))
    monkeypatch.setattr(floors, "FLOORS", {"slipway.pipeline": 50})
    monkeypatch.setattr("sys.argv", ["floors", str(tmp_path / "report.json")])
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    floors.main()
    table = " 81.8%  floor 50%  slipway.pipeline"
    assert capsys.readouterr().out == f"{table}\n"
    assert (tmp_path / "summary.md").read_text() == f"### Coverage\n\n```text\n{table}\n```\n"


def test_package_that_no_test_runs_has_missed_its_floor(tmp_path, monkeypatch):
    (tmp_path / "report.json").write_text('{"files": {}}')
    monkeypatch.setattr(floors, "FLOORS", {"slipway.pipeline": 50})
    monkeypatch.setattr("sys.argv", ["floors", str(tmp_path / "report.json")])
    assert floors.main() == 1


def test_each_process_counts_once_however_often_its_parents_forked(project, tmp_path):
    """A run's nodes are forked from a server that is forked from a warm process."""
    (tmp_path / "forks.py").write_text(FORKS)
    command = [
        sys.executable,
        "-m",
        "coverage",
        "run",
        f"--data-file={tmp_path / 'data'}",
        tmp_path / "forks.py",
    ]
    # As if nothing counted this test.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    subprocess.run(command, check=True, cwd=project, env={**environment, "PYTHONPATH": ".:tests/support"})
    assert len(list(tmp_path.glob("data.*"))) == 1 + GENERATIONS
