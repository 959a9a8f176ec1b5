"""What continuous integration ends with: pytest's closing line, and a failure of either half of the tests."""

import os
import subprocess

import pytest

# Closes as pytest does; the second word of the variable is how it ends.
MAKE = """#!/bin/sh
case $1 in
floors) [ "$FLOORS" = held ] ;;
test) echo "=== 1 $FIRST in 3.01s ==="; [ "$FIRST" = passed ] ;;
test-external) echo "=== 2 $SECOND in 4.01s (0:00:04) ==="; [ "$SECOND" = passed ] ;;
esac
"""
MISSED = "a package lies below its floor"


@pytest.mark.parametrize(
    ("first", "floors", "second", "code", "last"),
    [
        ("passed", "held", "passed", 0, "=== 2 passed in 4.01s (0:00:04) ==="),
        ("passed", "held", "failed", 1, "=== 2 failed in 4.01s (0:00:04) ==="),
        ("failed", "held", "passed", 1, "ci: make test has failed: === 1 failed in 3.01s ==="),
        ("failed", "missed", "failed", 1, "ci: make test has failed: === 1 failed in 3.01s ==="),
        ("passed", "missed", "passed", 1, f"ci: {MISSED} in make floors: === 1 passed in 3.01s ==="),
    ],
)
def test_both_halves_run_and_the_last_line_tells_the_truth(
    project, tmp_path, first, floors, second, code, last
):
    for name, text in {"make": MAKE, "id": "#!/bin/sh\necho 1000\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    told = {"FIRST": first, "FLOORS": floors, "SECOND": second}
    environment = {**os.environ, **told, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        [project / ".ci" / "run"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, last), done.stderr
    assert "=== 2 " in done.stdout
