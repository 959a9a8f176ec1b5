"""One undisturbed run of the taxi workload, with fewer epochs, for all modules that start from one."""

import json

import pytest
from made_once import Shared

from pipeline.local.history import History

FEWER = ("--set", "train.epochs=3")
# Of those that start from that run, the one that does most with it begins first, and the others when it is
# done, so that no worker waits for another.
FIRST = "e2e/test_taxi.py"
LATER = ("test_damaged_slice.py", "test_taxi_in_airflow.py", "test_taxi_in_notebook.py", "test_taxi_kills.py")


def pytest_collection_modifyitems(items):
    """The order of the files: otherwise as it is, with the many short unit tests at the end."""

    def place(item):
        path = item.path.as_posix()
        if path.endswith(FIRST):
            return 0
        return 2 if item.path.name in LATER else 3 if "/tests/unit/" in path else 1

    items.sort(key=place)


@pytest.fixture(scope="session")
def fewer():
    """Arguments for `run` that make it shorter."""
    return FEWER


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """The folder of that run, the same for all workers."""
    return Shared(tmp_path_factory, "taxi")


@pytest.fixture(scope="session")
def output(shared):
    """The output folder of that run. Who adds to it asks for `alone`; others look at `first_record` only."""
    return shared.folder / "output"


@pytest.fixture(scope="session")
def first_run(local_runner, shared, output):
    """The run, finished; made by the first worker that needs it."""

    def make(_folder):
        finished = local_runner("run", *FEWER, "--output", str(output))
        assert finished.returncode == 0, finished.stderr
        assert finished.listeners == [], "a run needs no port, not even on loopback"
        return finished

    return shared.made(make)


@pytest.fixture(scope="session")
def first_record(first_run, output):
    """The record of that run, whatever was added since."""
    *_, first = History(output).runs()
    return first


@pytest.fixture(scope="module")
def alone(shared):
    """No other module adds to the folder of that run meanwhile."""
    with shared.alone():
        yield


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
