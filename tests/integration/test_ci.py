"""What continuous integration ends with: pytest's closing line, and a failure of either half of the tests."""

import os
import subprocess

import pytest

# Closes as pytest does; the second word of the variable is how it ends.
MAKE = """#!/bin/sh
case $1 in
lint) echo "${LINT-nothing wrong}"; [ -z "${LINT+wrong}" ] ;;
floors) [ "$FLOORS" = held ] ;;
test)
    echo "SKIPPED [1] tests/a.py:3: Azurite is not here: make azurite"
    echo "=== 1 $FIRST in 3.01s ==="; [ "$FIRST" = passed ] ;;
test-external)
    echo "SKIPPED [12] tests/b.py: an image is built by root"
    echo "SKIPPED [2] tests/c.py:9: Azurite is not here: make azurite"
    [ "$SECOND" = passed ] || echo "FAILED tests/d.py::test_of_many_words[$(printf %200s)] - assert 1 == 2"
    echo "nanobind: leaked 111 functions!"
    echo "=== 2 $SECOND in 4.01s (0:00:04) ==="; [ "$SECOND" = passed ] ;;
esac
"""
MISSED = "a package lies below its floor"


@pytest.fixture
def run(project, tmp_path):
    """Runs it with a `make` that only tells how each target ends; returns how it ended."""
    for name, text in {"make": MAKE, "id": "#!/bin/sh\necho 1000\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def call(**told):
        environment = {**os.environ, **told, "PATH": f"{tmp_path}:/usr/bin:/bin"}
        return subprocess.run(
            [project / ".ci" / "run"], env=environment, capture_output=True, text=True, timeout=60
        )

    return call


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
def test_both_halves_run_and_the_last_line_tells_the_truth(run, first, floors, second, code, last):
    done = run(FIRST=first, FLOORS=floors, SECOND=second)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, last), done.stderr
    assert "nothing wrong" in done.stdout
    assert done.stdout.count("=== 2 ") == 1
    reasons = "Azurite is not here: make azurite (3); an image is built by root (12)"
    told = f"ci: skipped, with the number of tests: {reasons}"
    closing = f"=== 2 {second} in 4.01s (0:00:04) ==="
    assert f"\n{told}\n{closing}\n" in done.stdout


def test_what_failed_is_named_again_at_the_end(run):
    lines = run(FIRST="passed", FLOORS="held", SECOND="failed").stdout.splitlines()
    named, _, closing = lines[-3:]
    assert named.startswith("FAILED tests/d.py::test_of_many_words[ ")
    assert len(named) == 160
    assert closing.startswith("=== 2 failed")


def test_no_test_begins_where_lint_which_ran_beside_the_rest_has_failed(run):
    done = run(LINT="an unused import", FIRST="passed")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "an unused import"), done.stderr
    assert "=== 1 " not in done.stdout
