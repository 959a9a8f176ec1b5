"""A run whose nodes share their files out among forked processes: its results are those of one process.

External: that two processes give what one gives is compared for each of the three components in its folder
here, by processes that are forked in the same way.
"""

import re
from itertools import islice

import pytest

from slipway.components.shards import BYTES_PER_PROCESS_VARIABLE

pytestmark = [pytest.mark.slow, pytest.mark.external]

SHARED_OUT = {
    "StatisticsGen": "statistics", "Transform": "transformed_examples", "Evaluator": "evaluation",
}  # fmt: skip


@pytest.fixture(scope="module")
def trips(tmp_path_factory, taxi_csv):
    """Some trips; Ingest makes several files of examples of them."""
    folder = tmp_path_factory.mktemp("trips")
    with taxi_csv.open() as source:
        (folder / "trips.csv").write_text("".join(islice(source, 3_001)))
    return folder


def content(folder):
    """What a node has written into a folder, by path: files of rows, statistics and metrics."""
    import tensorflow as tf
    from tensorflow.train import Example

    def rows(path):
        # TFX's encoder writes the features of a row in any order.
        read = tf.data.TFRecordDataset(str(path), "GZIP").as_numpy_iterator()
        return [Example.FromString(each).SerializeToString(deterministic=True) for each in read]

    found = {path.relative_to(folder): rows(path) for path in folder.glob("Split-*/*.gz")}
    for pattern in ("Split-*/FeatureStats.pb", "metrics-*"):
        found |= {path.relative_to(folder): path.read_bytes() for path in folder.glob(pattern)}
    return found


def test_nodes_of_a_run_give_the_same_by_two_processes_as_by_one(trips, warm_runner, tmp_path):
    output = tmp_path / "out"

    def run(processes, *nodes):
        done = warm_runner(
            *("run", "taxi", "--profile", "dev", "--output", str(output), *nodes),
            *("--set", f"data.source={trips}/*.csv", "--set", "data.min_shards=6", "--accept-data", "a test"),
            *("--set", f"beam.options={{direct_num_workers: {processes}}}"),
            **{BYTES_PER_PROCESS_VARIABLE: "1"},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return max((output / "runs").iterdir())

    def beside(folder, node):
        log = (folder / "logs" / f"{node}.log").read_text()
        return re.findall(r"process \d+ did (\d+) part", log)

    alone = run(1, "--to", "Evaluator")
    shared = {"Evaluator": run(2, "--no-cache", "--from", "Evaluator", "--to", "Evaluator")}
    last = run(2, "--no-cache", "--from", "StatisticsGen", "--to", "Transform")
    shared |= dict.fromkeys(("StatisticsGen", "Transform"), last)
    for node, key in SHARED_OUT.items():
        assert beside(alone, node) == []
        [parts] = beside(shared[node], node)
        assert int(parts) >= 1
        # By the numbers that ML Metadata gives.
        one, two = sorted((output / "artifacts/taxi" / node / key).iterdir(), key=lambda each: int(each.name))
        assert content(one) == content(two) != {}
