"""Transform beside TFX's own executor, on the artifacts of a finished taxi run, in turns.

    python local_runner.py run taxi --output out
    python benchmarks/bench_transform.py out --times 1 40

The rows are repeated as often as asked for. Each measurement is a process of its own, which has imported TFX
before the clock starts. Lines of JSON: seconds on the clock and of the processor, megabytes; then how many
times as long TFX's own executor takes.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_evaluator import latest
from bench_ingest import measured

PROJECT = Path(__file__).resolve().parent.parent


def repeat_rows(source: Path, target: Path, times: int) -> None:
    """Writes the records of all splits again and again."""
    for file in source.glob("Split-*/*.gz"):
        path = target / file.relative_to(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        records = gzip.decompress(file.read_bytes())
        with gzip.open(path, "wb", compresslevel=1) as written:
            for _ in range(times):
                written.write(records)


def transform(output: Path, folder: Path, *, stock: bool) -> dict[str, float]:
    """Runs one of the executors in this process, and measures it."""
    os.environ["TF_USE_LEGACY_KERAS"] = "0"
    from tfx.components.transform.executor import Executor as Stock
    from tfx.types import standard_artifacts

    from slipway.components.transform.executor import Executor
    from slipway.pipeline.engine.tfx.beam_answers import keep_beams_answers

    keep_beams_answers()  # as in a run: TFX's own gains by it

    def artifact(kind, uri):
        found = kind()
        found.uri = str(uri)
        return [found]

    chosen = Stock if stock else Executor
    context = chosen.Context(
        beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=none"],
        tmp_dir=str(folder / "beam"),
        unique_id="1",
    )
    inputs = {
        "examples": artifact(standard_artifacts.Examples, folder / "examples"),
        "schema": artifact(standard_artifacts.Schema, latest(output, "SchemaGen", "schema")),
    }
    inputs["examples"][0].split_names = '["train", "eval"]'
    inputs["examples"][0].set_string_custom_property("payload_format", "FORMAT_TF_EXAMPLE")
    inputs["examples"][0].set_string_custom_property("file_format", "tfrecords_gzip")
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
    return measured(lambda: chosen(context).Do(inputs, outputs, properties))


def main() -> None:
    """Measures both at each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, help="of a taxi run")
    parser.add_argument("--times", type=int, nargs="+", default=[1, 40])
    parser.add_argument("--one", nargs=2, metavar=("WHICH", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        which, folder = asked.one
        print(json.dumps(transform(asked.output, Path(folder), stock=which == "stock")))
        return
    environment = {
        **os.environ,
        "PYTHONPATH": f"{PROJECT}:{PROJECT / 'benchmarks'}",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    for times in asked.times:
        with tempfile.TemporaryDirectory() as folder:
            repeat_rows(latest(asked.output, "Ingest", "examples"), Path(folder, "examples"), times)
            found = {}
            for which in ("stock", "ours"):
                command = [sys.executable, __file__, str(asked.output), "--one", which, folder]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                if done.returncode:
                    sys.exit(f"{which}: {done.stderr[-2000:]}")
                found[which] = json.loads(done.stdout.splitlines()[-1])
                told = {key: round(value, 2) for key, value in found[which].items()}
                print(json.dumps({"executor": which, "times": times, **told}), flush=True)
            ratios = {key: round(found["stock"][key] / found["ours"][key], 1) for key in ("wall_s", "cpu_s")}
            print(json.dumps({"stock_to_ours": ratios, "times": times}), flush=True)


if __name__ == "__main__":
    main()
