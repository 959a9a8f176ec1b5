"""The line for cron in docs/watch.md: a new training exactly if something has drifted."""

import re
import subprocess

import pytest


@pytest.fixture
def line(project):
    """The command, without its times."""
    page = (project / "docs" / "watch.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^    55 23 \* \* \*  (.+)$", page, re.MULTILINE)
    return found


@pytest.mark.parametrize(
    ("watched", "commands"),
    [
        (0, ["watch taxi"]),  # nothing has drifted
        (3, ["watch taxi", "run taxi"]),
        (2, ["watch taxi"]),  # there was nothing to judge
        (1, ["watch taxi"]),  # it failed
    ],
)
def test_a_training_follows_a_drift_and_nothing_else(line, watched, commands, tmp_path):
    python = tmp_path / ".venv" / "bin" / "python"  # cron has no environment that would be activated
    python.parent.mkdir(parents=True)
    python.write_text(
        f'#!/bin/sh\nshift; echo "$@" >>"{tmp_path}/commands"; [ "$1" != watch ] || exit {watched}\n'
    )
    python.chmod(0o755)
    there = line.replace("/srv/project", str(tmp_path))
    assert there != line
    subprocess.run(["/bin/sh", "-c", there], env={"PATH": "/usr/bin:/bin"}, check=False)
    assert (tmp_path / "commands").read_text().splitlines() == commands


def test_nothing_runs_where_the_project_is_not(line, tmp_path):
    there = line.replace("/srv/project", str(tmp_path / "gone"))
    done = subprocess.run(["/bin/sh", "-c", there], capture_output=True, text=True, check=False)
    assert "python" not in done.stderr
    assert "gone" in done.stderr
