"""Transform beside TFX's own executor, on the artifacts of a finished taxi run, in turns.

    python local_runner.py run taxi --output out
    python benchmarks/bench_transform.py out --times 1 40

The rows are repeated as often as asked for. Each measurement is a process of its own, which has imported TFX
before the clock starts. Lines of JSON: seconds on the clock and of the processor, megabytes; then how many
times as long TFX's own executor takes.
"""

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


def transform(output: Path, folder: Path, *, stock: bool) -> dict[str, float]:
    """Runs one of the executors in this process, and measures it."""
    from tfx.components.transform.executor import Executor as Stock
    from tfx.types import standard_artifacts

    from slipway.components.transform.executor import Executor
    from slipway.pipeline.engine.tfx.beam_answers import keep_beams_answers

    keep_beams_answers()  # as in a run: TFX's own gains by it

    inputs = {
        "examples": examples_in(folder / "examples", ("train", "eval")),
        "schema": artifact(standard_artifacts.Schema, latest(output, "SchemaGen", "schema")),
    }
    outputs = {
        "transform_graph": artifact(standard_artifacts.TransformGraph, folder / f"graph-{stock}"),
        "transformed_examples": artifact(standard_artifacts.Examples, folder / f"transformed-{stock}"),
    }
    properties = {
        "preprocessing_fn": "workloads.taxi.preprocessing.preprocessing_fn",
        "disable_statistics": 1,
        "force_tf_compat_v1": 0,
        "custom_config": "null",
    }
    executor = in_process(Stock if stock else Executor, folder)
    return measured(lambda: executor.Do(inputs, outputs, properties))


def main() -> None:
    """Measures both at each size."""
    parser = arguments(__doc__)
    parser.add_argument("--times", type=int, nargs="+", default=[1, 40])
    asked = parser.parse_args()
    if measured_here(asked, transform):
        return
    for times in asked.times:
        with tempfile.TemporaryDirectory() as folder:
            repeat_rows(latest(asked.output, "Ingest", "examples"), Path(folder, "examples"), times)
            compare(__file__, asked, folder, times=times)


if __name__ == "__main__":
    main()
