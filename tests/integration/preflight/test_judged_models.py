"""The preflight about models that have known faults, and about models that only look as if they had."""

import subprocess

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.external]


def test_each_fault_is_told_in_the_users_words_and_no_model_is_accused_falsely(project, tpu_python):
    done = subprocess.run(
        [tpu_python, "-W", "ignore", "-m", "benchmarks.preflight_suite", "--traced"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.count("\nright ") > 50
