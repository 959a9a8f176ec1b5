"""One undisturbed run of the taxi workload, with fewer epochs, for all modules that start from one."""

import json

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
    assert finished.listeners == [], "a run needs no port, not even on loopback"
    return finished


@pytest.fixture(scope="session")
def preflight(local_runner):
    """The preflight of a workload that has run, for one slice: with libtpu where it is, else for a CPU."""

    def call(workload, output):
        finished = local_runner(
            "preflight", workload, "--tpu", "v5e-8", "--search", "0", "--json", "--output", str(output)
        )
        assert finished.returncode == 0, finished.stderr
        document = json.loads(finished.stdout)
        kept = (output / "preflight" / f"{workload}.json").read_text(encoding="utf-8")
        assert json.loads(kept) == document
        return document["slices"][0]

    return call
