"""The options of conftest.py, on a test of its own."""

import subprocess
import sys

import pytest

FILE = """
def test_with_a_folder(tmp_path, request):
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "left").touch()
"""
STATEFUL = """
import pytest

seen = []


@pytest.mark.parametrize("number", [1, 2])
def test_that_none_came_before(number, tmp_path):
    assert number not in seen
    seen.append(number)
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [(), ("-n", "1")])
def test_a_single_test_runs_twice_in_one_process(project, tmp_path, jobs):
    file = tmp_path / "test_single.py"
    file.write_text(FILE, encoding="utf-8")
    done = pytest_on(file, project, "--twice", *jobs)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    file.write_text(STATEFUL, encoding="utf-8")
    done = pytest_on(file, project, "--twice", *jobs)
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_an_external_unit_test_is_refused_as_no_command_would_run_it(project, tmp_path):
    file = tmp_path / "tests" / "unit" / "test_single.py"
    file.parent.mkdir(parents=True)
    file.write_text(f"import pytest\npytestmark = pytest.mark.external\n{FILE}", encoding="utf-8")
    done = pytest_on(file, project)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert "test_with_a_folder is external: move it out of tests/unit" in done.stdout + done.stderr


def pytest_on(file, project, *options):
    """Runs a file with the project's conftest.py."""
    words = ["-q", "-p", "no:cacheprovider", f"--confcutdir={project}", "-c", str(project / "pyproject.toml")]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words, "-p", "conftest", *options, str(file)],
        cwd=project / "tests",
        capture_output=True,
        text=True,
        check=False,
    )
