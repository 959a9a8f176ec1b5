"""Many runs from one process, with TFX imported once."""

import itertools
import os
import resource
import statistics
import tempfile
from pathlib import Path

import pytest

from slipway import Warm, run
from slipway.pipeline.engine.processes.os_processes import children
from slipway.pipeline.errors import PipelineError

pytestmark = pytest.mark.slow

RUNS = 10
MODULE = """
import toy_pipeline
from tfx import v1 as tfx

@tfx.dsl.components.component
def Say(made: tfx.dsl.components.OutputArtifact[tfx.types.standard_artifacts.String]):
    made.value = {word!r}

def words():
    return toy_pipeline.pipeline("words", Say().with_id("Say"))
"""


@pytest.fixture(scope="module")
def warm():
    """The process that has imported TFX: this module's own, whose children and files are counted."""
    with Warm() as process:
        yield process


@pytest.fixture
def system(tmp_path, monkeypatch):
    """The folder for temporary files, this test's own."""
    folder = tmp_path / "system"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def names(folder: str) -> list[str]:
    return sorted(os.listdir(folder))  # noqa: PTH208


def own_names(folder: str) -> list[str]:
    """The names of this user's files: a database's server, of another user, has its own there."""
    with os.scandir(folder) as entries:
        return sorted(each.name for each in entries if is_own(each))


def is_own(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.stat().st_uid == os.getuid()
    except FileNotFoundError:
        return False


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def test_many_runs_in_a_row_leave_nothing_behind(in_process, system, warm):
    ours, theirs = os.getpid(), warm.pid
    # Other tests' servers may be children of this process as well.
    others = set(children(ours)) - {theirs}

    def footprint() -> dict[str, object]:
        return {
            "descriptors": [len(names(f"/proc/{pid}/fd")) for pid in (ours, theirs)],
            "processes": [sorted(set(children(pid)) - others) for pid in (ours, theirs)],
            "shared memory": own_names("/dev/shm"),  # noqa: S108
            "temporary files": names(str(system)),
            "files": [names(str(in_process.output)), len(names(str(in_process.output / "cache")))],
        }

    sizes: dict[int, list[int]] = {ours: [], theirs: []}
    for number in range(RUNS):
        result = run("toy_pipeline:one", output=in_process.output, no_cache=True, quiet=True, warm=warm)
        assert result.ok, result.record
        if number == 4:  # what is imported or remembered at first is there now
            before = footprint()
        if number >= 4:
            for pid, measured in sizes.items():
                measured.append(resident_bytes(pid))
    assert footprint() == before
    assert before["temporary files"] == []
    assert before["processes"] == [[theirs], []]
    for measured in sizes.values():
        # What a run leaves, each run leaves. The process that other tests use, too, once grew by 13 MB,
        # all in all, beside a load of 10.
        assert statistics.median(after - size for size, after in itertools.pairwise(measured)) < 0.6 * 2**20
    assert in_process.lines("made") == ["a 1"] * RUNS, "each of them did its work"
    for folder in (in_process.output / "runs").iterdir():
        assert names(str(folder)) == [
            "events.jsonl",
            "fingerprints.json",
            "logs",
            "progress",
            "report.html",
            "run.json",
        ]


def test_a_module_that_was_edited_between_two_runs_counts(in_process, warm, monkeypatch):
    folder = in_process.folder
    monkeypatch.setenv("PYTHONPATH", f"{in_process.environment['PYTHONPATH']}:{folder}")
    for word in ("one", "three"):
        (folder / "users_words.py").write_text(MODULE.format(word=word))
        result = run("users_words:words", output=in_process.output, quiet=True, warm=warm)
        [made] = result.raise_for_state().outputs("Say")["made"]
        assert Path(made).read_text() == word


def test_an_edit_counts_in_a_folder_that_the_pipelines_own_module_puts_on_the_path(
    in_process, warm, monkeypatch
):
    folder = in_process.folder
    monkeypatch.setenv("PYTHONPATH", f"{in_process.environment['PYTHONPATH']}:{folder}")
    (folder / "beside").mkdir()
    source = MODULE.format(word="").replace("''", "users_word.WORD")
    source = f"import sys\nsys.path.append({str(folder / 'beside')!r})\nimport users_word\n{source}"
    (folder / "users_path.py").write_text(source)
    for word in ("one", "three"):
        (folder / "beside" / "users_word.py").write_text(f"WORD = {word!r}\n")
        result = run("users_path:words", output=in_process.output, quiet=True, warm=warm)
        [made] = result.raise_for_state().outputs("Say")["made"]
        assert Path(made).read_text() == word


def test_another_keras_that_the_pipelines_own_module_takes_counts(in_process, warm, monkeypatch):
    folder = in_process.folder
    monkeypatch.setenv("PYTHONPATH", f"{in_process.environment['PYTHONPATH']}:{folder}")
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    (folder / "users_words.py").write_text(MODULE.format(word="one"))
    source = "from users_words import words\n"
    for line in ("", "import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\n"):
        (folder / "users_keras.py").write_text(line + source)
        last = run("users_keras:words", output=in_process.output, quiet=True, warm=warm)
    assert last.nodes["Say"].why == "TF_USE_LEGACY_KERAS 1 added"


def test_a_run_whose_warm_process_is_gone_is_reported(in_process):
    with Warm() as warm:
        pass
    with pytest.raises(PipelineError, match="The warm process is gone"):
        run("toy_pipeline:one", output=in_process.output, quiet=True, warm=warm)
    assert in_process.left() == []
