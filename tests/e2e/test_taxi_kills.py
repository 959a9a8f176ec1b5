"""The taxi workload, killed at random moments and resumed: every artifact as in an undisturbed run.

Seen only here: every artifact of all nodes after kills at moments that nobody has thought of.
"""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slipway.pipeline.engine.processes.os_processes import leftovers
from slipway.pipeline.runs.history import History

pytestmark = [pytest.mark.slow, pytest.mark.external]

# Each run is killed once while one of these is at work: early, in the middle, late.
MOMENTS = (
    ("Ingest", "StatisticsGen", "Transform"),
    ("Transform", "Trainer", "Evaluator"),
    ("ModelGate", "Pusher", "Pusher"),
)
VICTIMS = ("node", "engine", "both")
# Sums over Beam's bundles differ in the last digit from one undisturbed run to the next.
CLOSE = {"rel": 1e-4, "abs": 1e-5}


@pytest.fixture(scope="module")
def killed(local_runner, fewer, project, tmp_path_factory):
    """The output folder of a run that was killed again and again, and what happened to it."""
    output = tmp_path_factory.mktemp("killed") / "output"
    seed = int(os.environ.get("KILL_SEED", time.time_ns()))
    story = [f"KILL_SEED={seed}"]
    moment = random.Random(seed)  # noqa: S311 (moments, not secrets)
    command = [sys.executable, str(project / "local_runner.py")]
    for number, nodes in enumerate(MOMENTS):
        words = ["run", *fewer] if number == 0 else ["resume"]
        node, victim = moment.choice(nodes), moment.choice(VICTIMS)
        # Up to what the node takes; those of the end take a tenth of a second.
        after_s = moment.uniform(0.0, 0.15 if number == 2 else 3.0)
        story.append(f"{words[0]}, {victim} killed {after_s:.3f} s into {node}")
        engine = subprocess.Popen(
            [*command, *words, "--output", str(output)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if _begins(engine, output, node):
            time.sleep(after_s)
            story[-1] += f": {_kill(engine, output, victim)}"
        engine.wait(timeout=120)
        assert _nothing_is_left(output), story
    resumed = local_runner("resume", "--output", str(output))
    # Where the last kill came after the end there is nothing left to resume.
    assert resumed.returncode == 0 or "nothing to resume" in resumed.stderr, (story, resumed.stderr)
    assert _nothing_is_left(output), story
    print("\n".join(story))
    return output


def _begins(engine, output, node) -> bool:
    """Waits until a node is at work; False where the run ended first."""
    while engine.poll() is None:
        record = next(History(output).runs(), None)
        if record and any(n.id == node and n.state == "running" for n in record.nodes):
            return True
        time.sleep(0.02)  # nodes of the end take 0.1 s; to read a record takes milliseconds
    return False


def _kill(engine, output, victim) -> list[str]:
    told = []
    if victim in ("node", "both"):
        # A node's process leads a group of its own; the fork server leads a session.
        for pid in leftovers(output / "runs"):
            try:
                if os.getpgid(pid) == pid != os.getsid(pid):
                    os.kill(pid, signal.SIGKILL)
                    told.append("node")
            except ProcessLookupError:
                continue  # it has ended by itself
    if victim in ("engine", "both"):
        engine.kill()
        told.append("engine")
    return told


def _nothing_is_left(output) -> bool:
    until = time.monotonic() + 60
    while list(leftovers(output / "runs")) and time.monotonic() < until:
        time.sleep(0.1)
    return not list(leftovers(output / "runs"))


@pytest.fixture
def both(first_record, killed):
    """The records of a run that nothing happened to, and of the one that was killed."""
    [resumed] = History(killed).runs()
    return first_record, resumed


@pytest.fixture
def artifacts(both):
    """Gives the folders of an artifact in the two runs."""

    def find(node_id, key):
        return [Path(record.node(node_id).outputs[key][0]["uri"]) for record in both]

    return find


def test_every_node_is_done(both):
    first, second = both
    assert second.state == "complete"
    states = {node.id: node.state for node in second.nodes}
    assert states == {node.id: node.state for node in first.nodes}
    assert set(states.values()) == {"complete"}


def _same_files(folders, pattern):
    left, right = (
        {p.relative_to(f): p.read_bytes() for p in f.rglob(pattern) if p.is_file()} for f in folders
    )
    assert left == right
    assert left


def test_schema_anomalies_and_vocabularies_are_the_same(artifacts):
    _same_files(artifacts("SchemaGen", "schema"), "*")
    _same_files(artifacts("ExampleValidator", "anomalies"), "*")
    _same_files(artifacts("Transform", "transform_graph"), "assets/*")


def test_ingested_examples_are_the_same(artifacts):
    left, right = (
        {p.relative_to(f): gzip.decompress(p.read_bytes()) for p in f.rglob("*.gz")}
        for f in artifacts("Ingest", "examples")
    )
    assert left == right
    assert left


def test_statistics_are_the_same(artifacts):
    from tensorflow_metadata.proto.v0 import statistics_pb2

    def read(folder):
        found = {}
        for path in folder.rglob("FeatureStats.pb"):
            [dataset] = statistics_pb2.DatasetFeatureStatisticsList.FromString(path.read_bytes()).datasets
            found[path.parent.name, "rows"] = dataset.num_examples
            for feature in dataset.features:
                numbers, name = feature.num_stats, feature.path.step[0]
                common = numbers.common_stats if name and feature.HasField("num_stats") else None
                common = common or feature.string_stats.common_stats
                found[path.parent.name, name] = [
                    common.num_non_missing, common.num_missing, numbers.mean, numbers.std_dev,
                    numbers.min, numbers.max, feature.string_stats.unique,
                ]  # fmt: skip
        return found

    left, right = map(read, artifacts("StatisticsGen", "statistics"))
    assert left.keys() == right.keys()
    for key, values in left.items():
        assert right[key] == pytest.approx(values, **CLOSE), key


def test_transformed_examples_are_the_same(artifacts):
    import tensorflow as tf

    def rows(folder):
        found = []
        for path in sorted(folder.rglob("*.gz")):
            for record in tf.data.TFRecordDataset(str(path), compression_type="GZIP").as_numpy_iterator():
                features = tf.train.Example.FromString(record).features.feature
                values = [features[name] for name in sorted(features)]
                found.append([(v.float_list.value or v.int64_list.value)[0] for v in values])
        return found

    left, right = map(rows, artifacts("Transform", "transformed_examples"))
    assert len(left) == len(right) == 15_002
    for one, other in zip(left, right, strict=True):
        assert one == pytest.approx(other, **CLOSE)


def test_weights_are_the_same(artifacts):
    import tensorflow as tf

    def read(folder):
        reader = tf.train.load_checkpoint(str(folder / "Format-Serving" / "variables" / "variables"))
        names = [n for n, dtype in reader.get_variable_to_dtype_map().items() if dtype.is_floating]
        return {name: reader.get_tensor(name) for name in names}

    left, right = map(read, artifacts("Trainer", "model"))
    assert left.keys() == right.keys()
    assert sum(weights.size for weights in left.values()) > 1000
    for name, weights in left.items():
        assert right[name] == pytest.approx(weights, **CLOSE), name


def test_metrics_of_every_slice_are_the_same(artifacts):
    left, right = (
        json.loads((folder / "verdict.json").read_text()) for folder in artifacts("ModelGate", "blessing")
    )
    assert left["slices"].keys() == right["slices"].keys()
    for name, metrics in left["slices"].items():
        assert right["slices"][name] == pytest.approx(metrics, **CLOSE), name


def test_one_version_is_served_and_it_is_the_model(both, killed, artifacts):
    record = both[1]
    [version] = (killed / "serving" / "taxi").glob("[0-9]*")
    assert record.pushed["path"] == str(version)
    model = artifacts("Trainer", "model")[1] / "Format-Serving"
    for path in model.rglob("*"):
        if path.is_file():
            assert (version / path.relative_to(model)).read_bytes() == path.read_bytes(), path


def test_no_temporary_file_is_left(killed):
    assert list((killed / "runs").glob("*/tmp")) == []
