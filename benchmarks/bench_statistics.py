"""Compares our executor of StatisticsGen with TFX's own, in turn, on taxi examples and on wide tables.

    python local_runner.py run taxi --to Ingest --output out
    python benchmarks/bench_statistics.py out --times 1 40 --columns 1000

The rows are repeated as often as requested; one third of a wide table's columns are words, two thirds are
numbers. Each measurement runs in a new process, which imports TFX before the clock starts. Prints lines of
JSON: wall and CPU seconds and megabytes, then the ratios of TFX's times to ours.
"""

import random
import tempfile
from pathlib import Path

from bench_ingest import measured
from stock_and_ours import (
    arguments,
    artifact,
    compare,
    examples_in,
    in_process,
    latest,
    measured_here,
    repeat_rows,
)

_SPLITS = ("train", "eval")


def write_wide(folder: Path, *, columns: int, rows: int) -> None:
    """Write a table with that many columns and rows, two thirds of which are in the train split."""
    import tensorflow as tf

    rng = random.Random(1)  # noqa: S311
    for split, share in zip(_SPLITS, (2, 1), strict=True):
        path = folder / f"Split-{split}" / "data_tfrecord-00000-of-00001.gz"
        path.parent.mkdir(parents=True)
        with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
            for _ in range(rows * share // 3):
                example = tf.train.Example()
                for column in range(columns):
                    feature = example.features.feature[f"column_{column}"]
                    if column % 3:
                        feature.float_list.value.append(rng.random())
                    else:
                        feature.bytes_list.value.append(b"word %d" % rng.randint(1, 100))
                writer.write(example.SerializeToString())


def statistics(_: Path, folder: Path, *, stock: bool) -> dict[str, float]:
    """Run one of the executors in this process, and measure it."""
    from tfx.components.statistics_gen.executor import Executor as Stock
    from tfx.types import standard_artifacts

    import tensorflow_data_validation as tfdv  # isort: skip  (after tfx, which patches what it imports)

    from slipway.components.statistics_gen.executor import Executor
    from slipway.pipeline.engine.tfx.beam_caching import cache_beam_lookups

    # As in a run. TFX's own executor would gain from it, too, but its own runner has nothing like it.
    if not stock:
        cache_beam_lookups()
    inputs = {"examples": examples_in(folder / "examples", _SPLITS)}
    outputs = {"statistics": artifact(standard_artifacts.ExampleStatistics, folder / f"statistics-{stock}")}
    options = tfdv.StatsOptions(num_quantiles_histogram_buckets=100)
    properties = {"stats_options_json": options.to_json(), "exclude_splits": "[]"}
    executor = in_process(Stock if stock else Executor, folder)
    return measured(lambda: executor.Do(inputs, outputs, properties))


def main() -> None:
    """Measure both executors at each size."""
    parser = arguments(__doc__)
    parser.add_argument("--times", type=int, nargs="*", default=[1, 40])
    parser.add_argument("--columns", type=int, nargs="*", default=[1_000])
    parser.add_argument("--rows", type=int, default=300, help="of a wide table")
    asked = parser.parse_args()
    if measured_here(asked, statistics):
        return
    for times in asked.times:
        with tempfile.TemporaryDirectory() as folder:
            repeat_rows(latest(asked.output, "Ingest", "examples"), Path(folder, "examples"), times)
            compare(__file__, asked, folder, times=times)
    for columns in asked.columns:
        with tempfile.TemporaryDirectory() as folder:
            write_wide(Path(folder, "examples"), columns=columns, rows=asked.rows)
            compare(__file__, asked, folder, columns=columns, rows=asked.rows)


if __name__ == "__main__":
    main()
