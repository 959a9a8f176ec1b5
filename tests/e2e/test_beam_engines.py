"""The taxi workload with its Beam steps on real engines: the same artifacts as with the direct runner.

Seen only here: Beam's other engines, with all that they pickle, send and merge.
"""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import flink_cluster
import pytest
import spark_cluster
from beam_cluster import FIRST, HOSTS, JOBS, SDK_WORKERS, SECOND, missing
from flink_cluster import FlinkCluster
from spark_cluster import SparkCluster

pytestmark = [pytest.mark.slow, pytest.mark.external]

ROWS = 1_000
METRICS_TOLERANCE = 0.01
RUN_LIMIT_S = 500
BEAM_NODES = ("Ingest", "StatisticsGen", "Transform", "Evaluator")
CLUSTERS = {"flink": (FlinkCluster, flink_cluster.BEAM), "spark": (SparkCluster, spark_cluster.BEAM)}
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
def settings(trips):
    return ["--set", f"data.source={trips}", "--set", "train.epochs=1"]


@pytest.fixture(scope="module")
def evaluated(settings, local_runner, tmp_path_factory):
    """Runs the workload; returns the folder of the run and its record."""

    def call(*words):
        output = tmp_path_factory.mktemp("output")
        finished = local_runner(
            "run", "taxi", "--output", str(output), *settings, *words,
            timeout_s=500, SLIPWAY_OPEN_PORTS="1",
        )  # fmt: skip
        assert finished.returncode == 0, finished.stderr
        return newest_run(output)

    return call


@pytest.fixture(scope="module")
def shared_run(output):
    """The folder and the record of the run that all tests share."""
    return newest_run(output)


@pytest.fixture(scope="module", params=CLUSTERS)
def cluster_and_beam(request, project, tmp_path_factory):
    if reason := missing(project, request.param):
        pytest.skip(reason)
    kind, beam = CLUSTERS[request.param]
    with kind(project, tmp_path_factory.mktemp("cluster")) as running:
        yield running, beam


@pytest.fixture(scope="module")
def cluster(cluster_and_beam):
    return cluster_and_beam[0]


@pytest.fixture(scope="module")
def beam(cluster_and_beam):
    """What a workload file's `beam` says to run on the cluster."""
    return cluster_and_beam[1]


@pytest.fixture(scope="module")
def on_cluster(cluster):
    """Starts local_runner.py on the host that has the job server; returns its process."""

    def call(*words):
        return subprocess.Popen(
            cluster.on(JOBS, sys.executable, "local_runner.py", *map(str, words)),
            env={name: value for name, value in os.environ.items() if name != "SLIPWAY_OPEN_PORTS"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return call


def test_two_workers_make_what_the_direct_runner_makes_though_one_is_killed(
    shared_run, cluster, beam, on_cluster, fewer, tmp_path
):
    words = [*fewer, "--set", f"beam={json.dumps(beam)}", "--output", tmp_path]
    run = on_cluster("run", "taxi", "--to", "Transform", *words)
    kill_until_lost(cluster, run)
    assert not_named(cluster) == []
    said, _ = run.communicate(timeout=RUN_LIMIT_S)
    assert run.returncode == 0, said
    assert not_named(cluster) == []
    assert has_lost(cluster)
    jobs = cluster.jobs()
    assert all(job.is_done for job in jobs)
    assert {host for job in jobs for host in job.hosts} == {FIRST, SECOND}
    _, record = newest_run(tmp_path)
    assert differences(shared_run[1], record) == []


def test_two_workers_evaluate_and_predict_as_the_direct_runner_does(
    shared_run, cluster, beam, on_cluster, warm_runner, fewer, output, trips, tmp_path
):
    from slipway.pipeline.config import BeamConfig, CloudConfig
    from slipway.pipeline.wiring.beam_engine import beam_args

    beam_words = beam_args(BeamConfig(**beam), CloudConfig())
    predict = ["predict", "taxi", "--input", str(trips), "--output", str(output), "--to"]
    assert warm_runner(*predict, str(tmp_path / "here")).returncode == 0
    before = len(cluster.jobs())
    words = ["run", "taxi", "--from", "Evaluator", "--to", "Evaluator", "--no-cache", "--output", output]
    for command in (
        [*words, *fewer, "--set", f"beam={json.dumps(beam)}"],
        [*predict, tmp_path / "there", *(f"--beam={word}" for word in beam_words)],
    ):
        process = on_cluster(*command)
        said, _ = process.communicate(timeout=RUN_LIMIT_S)
        assert process.returncode == 0, said
    assert len(cluster.jobs()) > before + 1
    ours, theirs = evaluation(shared_run[1]), evaluation(newest_run(output)[1])
    assert ours.keys() == theirs.keys()
    for name, metrics in ours.items():
        assert theirs[name] == pytest.approx(metrics, rel=1e-6, nan_ok=True), name
    here, there = predictions(tmp_path / "here"), predictions(tmp_path / "there")
    assert len(here) == ROWS
    assert there == pytest.approx(here, abs=1e-6)
    assert not_named(cluster) == []


@pytest.fixture(scope="module", params=ENGINES)
def engine(request, project):
    """The name of an engine that is here, and its program."""
    program = project / ".engines" / ENGINES[request.param]
    if not program.exists():
        pytest.skip(f"Beam on {request.param} is not here: `make {request.param}` fetches it")
    return request.param, program


@pytest.fixture(scope="module")
def direct(evaluated):
    """A run of the same rows on this machine."""
    return evaluated("--to", "Evaluator")


def test_engine_makes_what_the_direct_runner_makes(engine, direct, evaluated):
    name, program = engine
    folder, record = evaluated("--to", "Evaluator", "--set", f"beam.runner={name}")
    for node in BEAM_NODES:
        assert str(program) in (folder / "logs" / f"{node}.log").read_text(), f"{node} ran elsewhere"
    assert differences(direct[1], record) == []
    ours, theirs = evaluation(direct[1]), evaluation(record)
    # What is counted of the labels hangs on no model; two trainings on rows in another order are two models.
    assert labels(theirs) == labels(ours)
    assert theirs["overall"] == pytest.approx(ours["overall"], abs=METRICS_TOLERANCE)


def newest_run(output):
    """The folder of an output folder's newest run, and its record."""
    record = max(output.glob("runs/*/run.json"), key=lambda path: path.parent.name)
    return record.parent, json.loads(record.read_text())


def kill_until_lost(cluster, run):
    """Kills the second worker while a job's task runs on it, until a job has lost it.

    A task runs there while there is a process beside that from which it is forked. It may be a job's last
    one, and over when the worker ends: then no job has lost anything, and the next job's task is waited for.
    """

    def is_over():
        return run.poll() is not None

    while not (is_over() or has_lost(cluster)):
        cluster.wait_until(lambda: is_over() or len(cluster.pids(SDK_WORKERS, host=SECOND)) == 2, "no task")
        cluster.kill_worker(SECOND)
        cluster.start_worker(SECOND)
        cluster.wait_until(
            lambda: is_over() or has_lost(cluster) or all(job.is_done for job in cluster.jobs()), "no loss"
        )


def has_lost(cluster):
    """Whether a job of the cluster has lost a worker."""
    return any(job.has_lost for job in cluster.jobs())


def not_named(cluster):
    """The addresses on the hosts that stand for all interfaces."""
    return [
        (host, address)
        for host in HOSTS
        for address in cluster.listening(host)
        if not address.partition(":")[0].strip("0")
    ]


def predictions(folder):
    """The predictions, by the number of the row in its file."""
    lines = [line for file in folder.glob("predictions-*.jsonl") for line in file.read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    found = {row["row"]: value for row in rows for value in row["prediction"]}
    assert len(found) == len(rows)
    return found


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
