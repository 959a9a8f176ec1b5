"""Compares our executor of the Evaluator with TFX's own, on the artifacts of a finished taxi run, in turn.

    python local_runner.py run taxi --output out
    python benchmarks/bench_evaluator.py out --rows 5000 200000

The rows of the eval split are repeated up to the requested number; there are one model and 31 slices. Each
measurement runs in a new process, which imports TFX before the clock starts. Prints lines of JSON: wall and
CPU seconds and megabytes, then the ratios of TFX's times to ours.
"""

import tempfile
from pathlib import Path

from bench_ingest import measured
from stock_and_ours import arguments, artifact, compare, examples_in, in_process, latest, measured_here


def write_rows(source: Path, target: Path, rows: int) -> None:
    """Write `rows` records, repeating those of a split."""
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
    """Run one of the executors in this process, and measure it."""
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
    """Measure both executors at each size."""
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
