"""Compares our executor of Transform with TFX's own, in turn, on taxi examples and on wide tables.

    python local_runner.py run taxi --output out
    python benchmarks/bench_transform.py out --times 1 40 --columns 100

The rows are repeated as often as requested; each column of a wide table is scaled by a separate analysis.
Each measurement runs in a new process, which imports TFX before the clock starts. Prints lines of JSON: wall
and CPU seconds and megabytes, then the ratios of TFX's times to ours.
"""

import random
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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

_WIDE_ROWS = {"train": 400, "eval": 200}


def scale_each(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Scale each column: a preprocessing_fn with as many analyses as columns."""
    import tensorflow_transform as tft

    return {f"{name}_scaled": tft.scale_to_z_score(column) for name, column in inputs.items()}


def write_wide(folder: Path, *, columns: int) -> None:
    """Write a table with that many columns of numbers, and its schema."""
    import tensorflow as tf

    rng = random.Random(1)  # noqa: S311
    names = [f"column_{column}" for column in range(columns)]
    for split, rows in _WIDE_ROWS.items():
        path = folder / "examples" / f"Split-{split}" / "data_tfrecord-00000-of-00001.gz"
        path.parent.mkdir(parents=True)
        with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
            for _ in range(rows):
                example = tf.train.Example()
                for name in names:
                    example.features.feature[name].float_list.value.append(rng.random())
                writer.write(example.SerializeToString())
    (folder / "schema").mkdir()
    feature = (
        'feature {{ name: "{}" type: FLOAT presence {{ min_fraction: 1 }} shape {{ dim {{ size: 1 }} }} }}\n'
    )
    (folder / "schema" / "schema.pbtxt").write_text("".join(map(feature.format, names)), encoding="utf-8")


def transform(output: Path, folder: Path, *, stock: bool) -> dict[str, float]:
    """Run one of the executors in this process, and measure it."""
    from tfx.components.transform.executor import Executor as Stock
    from tfx.types import standard_artifacts

    from slipway.components.transform.executor import Executor
    from slipway.pipeline.engine.tfx.beam_caching import cache_beam_lookups

    # As in a run. TFX's own executor would gain from it, too, but its own runner has nothing like it.
    if not stock:
        cache_beam_lookups()

    schema = folder / "schema"
    is_wide = schema.is_dir()
    inputs = {
        "examples": examples_in(folder / "examples", ("train", "eval")),
        "schema": artifact(
            standard_artifacts.Schema, schema if is_wide else latest(output, "SchemaGen", "schema")
        ),
    }
    outputs = {
        "transform_graph": artifact(standard_artifacts.TransformGraph, folder / f"graph-{stock}"),
        "transformed_examples": artifact(standard_artifacts.Examples, folder / f"transformed-{stock}"),
    }
    properties = {
        "preprocessing_fn": "bench_transform.scale_each"
        if is_wide
        else "workloads.taxi.preprocessing.preprocessing_fn",
        "disable_statistics": 1,
        "force_tf_compat_v1": 0,
        "custom_config": "null",
    }
    executor = in_process(Stock if stock else Executor, folder)
    return measured(lambda: executor.Do(inputs, outputs, properties))


def main() -> None:
    """Measure both executors at each size."""
    parser = arguments(__doc__)
    parser.add_argument("--times", type=int, nargs="*", default=[1, 40])
    parser.add_argument("--columns", type=int, nargs="*", default=[])
    asked = parser.parse_args()
    if measured_here(asked, transform):
        return
    for times in asked.times:
        with tempfile.TemporaryDirectory() as folder:
            repeat_rows(latest(asked.output, "Ingest", "examples"), Path(folder, "examples"), times)
            compare(__file__, asked, folder, times=times)
    for columns in asked.columns:
        with tempfile.TemporaryDirectory() as folder:
            write_wide(Path(folder), columns=columns)
            compare(__file__, asked, folder, columns=columns)


if __name__ == "__main__":
    main()
