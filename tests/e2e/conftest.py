"""Workloads run and looked at; commands in a copy of the project; and a table."""

import json

import pytest
from copied import commands_in


@pytest.fixture(scope="session")
def record_of(warm_runner):
    """Runs a workload into a folder, with further options; returns the run's record."""

    def run(workload, output, *options):
        finished = warm_runner("run", workload, *options, "--output", str(output))
        assert finished.returncode == 0, finished.stderr
        return json.loads(warm_runner("show", "--json", "--output", str(output)).stdout)

    return run


@pytest.fixture(scope="module")
def here(copy, warm):
    """Gives commands to the local_runner.py of the module's fixture `copy`; returns what they say."""
    with commands_in(copy, warm) as call:

        def successful(*words):
            done = call("local_runner", *words)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        yield successful


@pytest.fixture(scope="session")
def preflight(local_runner):
    """The preflight of a workload that has run, for one slice: with libtpu where it is, else for a CPU."""

    def call(workload, output, *options):
        finished = local_runner(
            "preflight",
            workload,
            "--tpu",
            "v5e-8",
            "--search",
            "0",
            "--json",
            "--output",
            str(output),
            *options,
        )
        assert finished.returncode == 0, finished.stderr
        document = json.loads(finished.stdout)
        kept = (output / "preflight" / f"{workload}.json").read_text(encoding="utf-8")
        assert json.loads(kept) == document
        return document["slices"][0]

    return call


@pytest.fixture(scope="session")
def wine_table():
    """178 real wines of three kinds, with what tables have and models do not want.

    An id, a constant, dates, empty cells, names as labels.
    """
    import numpy as np
    from sklearn import datasets

    wine = datasets.load_wine(as_frame=True)
    frame = wine.frame
    frame.insert(0, "bottle id", np.arange(len(frame)) + 1)
    frame["country"] = "IT"
    frame["tasted"] = [f"2024-{1 + row % 12:02}-{1 + row % 28:02}" for row in range(len(frame))]
    frame.loc[::7, "alcohol"] = np.nan
    frame["target"] = [str(wine.target_names[code]) for code in frame["target"]]
    return frame
