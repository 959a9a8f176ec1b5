"""The options of conftest.py, on a test of its own."""

import subprocess
import sys

import pytest

FILE = """
def test_with_a_folder(tmp_path, request):
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "left").touch()
"""


@pytest.mark.slow
def test_a_single_test_runs_twice_in_one_process(project, tmp_path):
    """A test that pytest takes for set up, because it follows itself, has no fixtures."""
    file = tmp_path / "test_single.py"
    file.write_text(FILE, encoding="utf-8")
    words = ["-q", "-p", "no:cacheprovider", f"--confcutdir={project}", "-c", str(project / "pyproject.toml")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "-p", "conftest", "--twice", str(file)],
        cwd=project / "tests",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
