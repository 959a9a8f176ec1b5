"""The Evaluator beside TFX's own executor, on the artifacts of a finished taxi run, in turns.

    python local_runner.py run taxi --output out
    python benchmarks/bench_evaluator.py out --rows 5000 200000

The rows of the eval split are repeated until there are as many as asked for; one model, 31 slices. Each
measurement is a process of its own, which has imported TFX before the clock starts. Lines of JSON: seconds on
the clock and of the processor, megabytes; then how many times as long TFX's own executor takes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_ingest import measured

PROJECT = Path(__file__).resolve().parent.parent


def latest(output: Path, *parts: str) -> Path:
    """The newest artifact of a node."""
    return max(output.joinpath("artifacts", "taxi", *parts).iterdir(), key=lambda path: int(path.name))


def repeat_rows(source: Path, target: Path, rows: int) -> None:
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
    os.environ["TF_USE_LEGACY_KERAS"] = "0"
    from tfx.components.evaluator.executor import Executor as Stock
    from tfx.types import standard_artifacts
    from tfx.utils import proto_utils

    from slipway.components.evaluator.executor import Executor
    from slipway.components.model_gate.eval_config import eval_config

    def artifact(kind, uri):
        found = kind()
        found.uri = str(uri)
        return [found]

    config = eval_config(
        label="big_tip", metrics=["auc", "binary_accuracy"], slices=[["trip_start_hour"], ["payment_type"]]
    )
    chosen = Stock if stock else Executor
    context = chosen.Context(
        beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=none"],
        tmp_dir=str(folder / "beam"),
        unique_id="1",
    )
    inputs = {
        "examples": artifact(standard_artifacts.Examples, folder / "examples"),
        "model": artifact(standard_artifacts.Model, latest(output, "Trainer", "model")),
        "schema": artifact(standard_artifacts.Schema, latest(output, "SchemaGen", "schema")),
    }
    inputs["examples"][0].split_names = '["eval"]'
    outputs = {
        "evaluation": artifact(standard_artifacts.ModelEvaluation, folder / f"evaluation-{stock}"),
        "blessing": artifact(standard_artifacts.ModelBlessing, folder / f"blessing-{stock}"),
    }
    properties = {"eval_config": proto_utils.proto_to_json(config), "example_splits": "null"}
    return measured(lambda: chosen(context).Do(inputs, outputs, properties))


def main() -> None:
    """Measures both at each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, help="of a taxi run")
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000, 200_000])
    parser.add_argument("--only", choices=["stock", "ours"])
    parser.add_argument("--one", nargs=2, metavar=("WHICH", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        which, folder = asked.one
        print(json.dumps(evaluate(asked.output, Path(folder), stock=which == "stock")))
        return
    environment = {
        **os.environ,
        "PYTHONPATH": f"{PROJECT}:{PROJECT / 'benchmarks'}",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    for rows in asked.rows:
        with tempfile.TemporaryDirectory() as folder:
            source = latest(asked.output, "Ingest", "examples") / "Split-eval"
            repeat_rows(source, Path(folder, "examples", "Split-eval"), rows)
            found = {}
            for which in [asked.only] if asked.only else ["stock", "ours"]:
                command = [sys.executable, __file__, str(asked.output), "--one", which, folder]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                if done.returncode:
                    sys.exit(f"{which}: {done.stderr[-2000:]}")
                found[which] = json.loads(done.stdout.splitlines()[-1])
                told = {key: round(value, 2) for key, value in found[which].items()}
                print(json.dumps({"executor": which, "rows": rows, **told}), flush=True)
            if len(found) == 2:
                ratios = {
                    key: round(found["stock"][key] / found["ours"][key], 1) for key in ("wall_s", "cpu_s")
                }
                print(json.dumps({"times": ratios, "rows": rows}), flush=True)


if __name__ == "__main__":
    main()
