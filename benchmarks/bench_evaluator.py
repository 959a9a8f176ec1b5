"""The Evaluator beside TFX's own executor, on the artifacts of a finished taxi run, in turns.

    python local_runner.py run taxi --output out
    python benchmarks/bench_evaluator.py out --rows 5000 200000

The rows of the eval split are repeated until there are as many as asked for; one model, 31 slices. Each
measurement is a process of its own, which has imported TFX before the clock starts. Lines of JSON: seconds on
the clock and of the processor, megabytes; then how many times as long TFX's own executor takes.
"""

import tempfile
from pathlib import Path

from bench_ingest import measured
from stock_and_ours import arguments, artifact, compare, examples_in, in_process, latest, measured_here


def write_rows(source: Path, target: Path, rows: int) -> None:
    """Writes the records of a split again and again."""
    import tensorflow as tf

    records = [
        record
        for file in sorted(source.glob("*.gz"))
        for record in tf.data.TFRecordDataset(str(file), "GZIP").as_numpy_iterator()
    ]
    target.mkdir(parents=True)
    with tf.io.TFRecordWriter(str(target / "data_tfrecord-00000-of-00001.gz"), "GZIP") as writer:
        for place in range(rows):
            writer.write(records[place % len(records)])


def evaluate(output: Path, folder: Path, *, stock: bool) -> dict[str, float]:
    """Runs one of the executors in this process, and measures it."""
    from tfx.components.evaluator.executor import Executor as Stock
    from tfx.types import standard_artifacts
    from tfx.utils import proto_utils

    from slipway.components.evaluator.executor import Executor
    from slipway.components.model_gate.eval_config import eval_config

    config = eval_config(
        label="big_tip", metrics=["auc", "binary_accuracy"], slices=[["trip_start_hour"], ["payment_type"]]
    )
    inputs = {
        "examples": examples_in(folder / "examples", ["eval"]),
        "model": artifact(standard_artifacts.Model, latest(output, "Trainer", "model")),
        "schema": artifact(standard_artifacts.Schema, latest(output, "SchemaGen", "schema")),
    }
    outputs = {
        "evaluation": artifact(standard_artifacts.ModelEvaluation, folder / f"evaluation-{stock}"),
        "blessing": artifact(standard_artifacts.ModelBlessing, folder / f"blessing-{stock}"),
    }
    properties = {"eval_config": proto_utils.proto_to_json(config), "example_splits": "null"}
    executor = in_process(Stock if stock else Executor, folder)
    return measured(lambda: executor.Do(inputs, outputs, properties))


def main() -> None:
    """Measures both at each size."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000, 200_000])
    asked = parser.parse_args()
    if measured_here(asked, evaluate):
        return
    for rows in asked.rows:
        with tempfile.TemporaryDirectory() as folder:
            source = latest(asked.output, "Ingest", "examples") / "Split-eval"
            write_rows(source, Path(folder, "examples", "Split-eval"), rows)
            compare(__file__, asked, folder, rows=rows)


if __name__ == "__main__":
    main()
