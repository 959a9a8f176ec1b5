"""One undisturbed run of the taxi workload, with fewer epochs, for all modules that start from one."""

import pytest

FEWER = ("--set", "train.epochs=3")


@pytest.fixture(scope="session")
def fewer():
    """Arguments for `run` that make it shorter."""
    return FEWER


@pytest.fixture(scope="session")
def output(tmp_path_factory):
    """The output folder of that run; others may add to it after test_taxi.py, which asks for the latest."""
    return tmp_path_factory.mktemp("taxi") / "output"


@pytest.fixture(scope="session")
def first_run(local_runner, output):
    """The run, finished."""
    finished = local_runner("run", *FEWER, "--output", str(output))
    assert finished.returncode == 0, finished.stderr
    return finished
