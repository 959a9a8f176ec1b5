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


@pytest.fixture(scope="session")
def by_both(record_of):
    """Runs a workload that has run, and again with nodes in `beam.stock_nodes`; returns the outputs of its
    nodes in the two runs, ours and TFX's.
    """

    def run(nodes, workload, output, *options):
        stock = ("--set", f"beam.stock_nodes=[{', '.join(nodes)}]")
        ours, theirs = (
            {node["id"]: node["outputs"] for node in record_of(workload, output, *options, *more)["nodes"]}
            for more in ((), stock)
        )
        for node in nodes:
            assert ours[node].keys() == theirs[node].keys()
            assert ours[node] != theirs[node], "one is taken from the cache for the other"
        return ours, theirs

    return run


@pytest.fixture(scope="session")
def differences_in_data(by_both):
    """Says where the results of StatisticsGen and Transform differ from those of TFX's executors, by output.

    Equal is what is within the tolerances of `output_comparison`: of a float 1e-5 in an example, 1e-6 in
    a statistic.
    """
    from slipway.pipeline.cloud.rehearsal.output_comparison import compare_outputs

    def run(workload, output, *, nodes=("StatisticsGen", "Transform")):
        ours, theirs = by_both(nodes, workload, output, "--to", "Transform")
        compared = [each for node in nodes for each in compare_outputs(node, ours[node], theirs[node])]
        assert [each.unread for each in compared] == [""] * len(compared)
        return {each.output: each.differences for each in compared}

    return run


@pytest.fixture(scope="session")
def evaluations(by_both):
    """Trains another model of a workload that has a blessed one; returns the folders of two evaluations of
    both models, by our Evaluator and by TFX's.
    """
    from slipway.components.model_gate.evaluation import read_evaluation

    def run(workload, output):
        other = ("--set", "train.seed=2", "--set", "train.epochs=1", "--to", "Evaluator")
        outputs = by_both(["Evaluator"], workload, output, *other)
        ours, theirs = (each["Evaluator"]["evaluation"][0]["uri"] for each in outputs)
        assert outputs[0]["Trainer"] == outputs[1]["Trainer"]
        assert read_evaluation(ours).spreads
        assert not read_evaluation(theirs).spreads, "TFX's executor knows no bounds without being asked"
        return ours, theirs

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
