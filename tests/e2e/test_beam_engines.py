"""The taxi workload with its Beam steps on real engines: the same artifacts as with the direct runner.

Seen only here: Beam's other engines, with all that they pickle, send and merge.
"""

import importlib.util
import itertools
import json
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.external]

ROWS = 1_000
METRICS_TOLERANCE = 0.01
BEAM_NODES = ("Ingest", "StatisticsGen", "Transform", "Evaluator")
ENGINES = {
    "flink": "flink/job-server.jar",
    "spark": "spark/job-server.jar",
    "prism": "prism",
}


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    """The first trips of the taxi data."""
    [folder] = importlib.util.find_spec("tfx").submodule_search_locations
    file = tmp_path_factory.mktemp("trips") / "trips.csv"
    with Path(folder, "examples/chicago_taxi_pipeline/data/simple/data.csv").open() as data:
        file.write_text("".join(itertools.islice(data, ROWS + 1)))
    return file


@pytest.fixture(scope="module")
def evaluated(trips, local_runner, tmp_path_factory):
    """Runs the workload as far as the Evaluator; returns the folder of the run and its record."""

    def call(*words):
        output = tmp_path_factory.mktemp("output")
        settings = ["--set", f"data.source={trips}", "--set", "train.epochs=1"]
        finished = local_runner(
            "run", "taxi", "--to", "Evaluator", "--output", str(output), *settings, *words,
            timeout_s=500, SLIPWAY_OPEN_PORTS="1",
        )  # fmt: skip
        assert finished.returncode == 0, finished.stderr
        [record] = output.glob("runs/*/run.json")
        return record.parent, json.loads(record.read_text())

    return call


@pytest.fixture(scope="module")
def direct(evaluated):
    return evaluated()


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_makes_what_the_direct_runner_makes(engine, direct, evaluated, project):
    program = project / ".engines" / ENGINES[engine]
    if not program.exists():
        pytest.skip(f"Beam on {engine} is not here: `make {engine}` fetches it")
    folder, record = evaluated("--set", f"beam.runner={engine}")
    for node in BEAM_NODES:
        assert str(program) in (folder / "logs" / f"{node}.log").read_text(), f"{node} ran elsewhere"
    assert differences(direct[1], record) == []
    ours, theirs = evaluation(direct[1]), evaluation(record)
    # What is counted of the labels hangs on no model; two trainings on rows in another order are two models.
    assert labels(theirs) == labels(ours)
    assert theirs["overall"] == pytest.approx(ours["overall"], abs=METRICS_TOLERANCE)


def differences(ours, theirs):
    from slipway.pipeline.cloud.rehearsal.output_comparison import compare_outputs

    pairs = zip(by_id(ours).items(), by_id(theirs).values(), strict=True)
    compared = [
        comparison
        for (node, one), other in pairs
        for comparison in compare_outputs(node, one["outputs"], other["outputs"])
    ]
    kinds = {(comparison.node, comparison.output) for comparison in compared}
    assert kinds >= {
        ("Ingest", "examples"),
        ("StatisticsGen", "statistics"),
        ("Transform", "transform_graph"),
        ("Transform", "transformed_examples"),
    }
    return [comparison for comparison in compared if comparison.differences]


def evaluation(record):
    """The metrics by slice."""
    from slipway.components.model_gate.evaluation import read_evaluation

    [artifact] = by_id(record)["Evaluator"]["outputs"]["evaluation"]
    return read_evaluation(artifact["uri"]).candidate


def labels(metrics):
    """The label counts of the evaluation, by slice."""
    from slipway.components.model_gate.trivial_scores import LABEL_PREFIX

    found = {
        (name, key): value
        for name, each in metrics.items()
        for key, value in each.items()
        if key.startswith(LABEL_PREFIX)
    }
    assert {"overall", "payment_type=Cash"} <= {name for name, _ in found}
    return found


def by_id(record):
    return {node["id"]: node for node in record["nodes"]}
