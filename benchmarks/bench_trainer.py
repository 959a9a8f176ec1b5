"""Compares the Trainer with TFX's taxi template in one run: python benchmarks/bench_trainer.py --rows 80000

Both train the template's model on the same examples. The stock side is the template's `run_fn` in the
installed package; its speed is derived from the difference between a long and a short run, so that start and
export do not count. Our speed is measured by the training process itself over whole epochs. `bound` is one
compiled loop over the same tensors in memory. Each measurement runs in a new process and is repeated
`--rounds` times; the best is used, since other work on the machine can only slow it down.
"""

import argparse
import csv
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))
SHORT_STEPS, LONG_STEPS = 200, 8200
STOCK_BATCH, DEFAULT_BATCH = 40, 256
STEPPING_S = 4.0
"""The approximate time for which our training is measured."""


def sample() -> Path:
    """Return the path of the taxi sample in TFX's package."""
    tfx = Path(importlib.util.find_spec("tfx").origin).parent
    return tfx / "examples/chicago_taxi_pipeline/data/simple/data.csv"


# The measurements. Each runs in a new process, whose last line of output is a JSON object.


def prepare_template(folder: Path, rows: int) -> dict:
    """Transform the sample as the template does, and write `rows` examples to eight files."""
    import apache_beam as beam
    import tensorflow as tf
    import tensorflow_transform as tft
    import tensorflow_transform.beam as tft_beam
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2
    from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io, schema_utils
    from tfx.experimental.templates.taxi.models.preprocessing import preprocessing_fn

    floats, integers = ["trip_miles", "pickup_latitude", "fare", "tips"], ["trip_start_hour"]
    spec = {name: tf.io.FixedLenFeature([], tf.float32) for name in floats}
    spec |= {name: tf.io.FixedLenFeature([], tf.int64) for name in integers}
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    with sample().open(newline="") as source:
        trips = [
            {n: float(row[n] or 0) for n in floats} | {n: int(row[n]) for n in integers}
            for row in csv.DictReader(source)
        ]
    with beam.Pipeline() as pipeline, tft_beam.Context(temp_dir=str(folder / "tmp")):
        (transformed, transformed_metadata), transform_fn = (
            pipeline | beam.Create(trips),
            metadata,
        ) | tft_beam.AnalyzeAndTransformDataset(preprocessing_fn)
        coder = tft.coders.ExampleProtoCoder(transformed_metadata.schema)
        _ = (
            transformed
            | beam.Map(coder.encode)
            | beam.io.WriteToTFRecord(str(folder / "once"), shard_name_template="")
        )
        _ = transform_fn | tft_beam.WriteTransformFn(str(folder / "transform"))
    metadata_io.write_metadata(metadata, str(folder / "transform" / tft.TFTransformOutput.RAW_METADATA_DIR))
    schema = schema_pb2.Schema()
    schema.CopyFrom(metadata.schema)
    (folder / "schema.pbtxt").write_text(text_format.MessageToString(schema))
    records = [record.numpy() for record in tf.data.TFRecordDataset(str(folder / "once"))]
    (folder / "rows").mkdir()
    for number in range(8):
        with tf.io.TFRecordWriter(str(folder / "rows" / f"rows-{number}.gz"), "GZIP") as writer:
            for row in range(number, rows, 8):
                writer.write(records[row % len(records)])
    return {"rows": rows}


def stock(folder: Path) -> dict:
    """Measure the template's run_fn: the speed and CPU time per example, from a long and a short run."""
    from tfx.components.trainer.fn_args_utils import DataAccessor
    from tfx.components.util import tfxio_utils
    from tfx.dsl.io import fileio
    from tfx.experimental.templates.taxi.models.keras_model import model as template
    from tfx.types import standard_artifacts

    examples = standard_artifacts.Examples()
    examples.uri = str(folder / "rows")
    accessor = DataAccessor(
        tf_dataset_factory=tfxio_utils.get_tf_dataset_factory_from_artifact([examples], []),
        record_batch_factory=None,
        data_view_decode_fn=None,
    )
    files = sorted(str(path) for path in (folder / "rows").iterdir())
    took = {}
    for steps in (SHORT_STEPS, SHORT_STEPS, LONG_STEPS):  # the first run also imports, so it is repeated
        run = folder / f"stock-{steps}"
        fileio.makedirs(str(run))
        began, cpu = time.perf_counter(), time.process_time()
        template.run_fn(
            SimpleNamespace(
                train_files=files,
                eval_files=files,
                data_accessor=accessor,
                transform_output=str(folder / "transform"),
                train_steps=steps,
                eval_steps=1,
                model_run_dir=str(run / "run"),
                serving_model_dir=str(run / "model"),
            )
        )
        took[steps] = (time.perf_counter() - began, time.process_time() - cpu)
        shutil.rmtree(run)
    steps = LONG_STEPS - SHORT_STEPS
    wall, cpu = (took[LONG_STEPS][i] - took[SHORT_STEPS][i] for i in (0, 1))
    return {
        "examples_per_s": STOCK_BATCH * steps / wall,
        "cpu_us_an_example": 1e6 * cpu / steps / STOCK_BATCH,
    }


def job_of(source: dict, folder: Path, *, batch_size: int, epochs: int, backend: str = "tensorflow"):
    """Return a training job over the examples that `source` names."""
    import tensorflow_transform as tft

    from slipway.components.trainer.job import TrainingJob
    from slipway.components.trainer.transformed_features import features_of

    transform = tft.TFTransformOutput(source["transform"])
    job = TrainingJob(
        train_files=tuple(sorted(source["train_files"])),
        eval_files=(),
        features=features_of(transform.transformed_metadata.schema, images=source.get("images")),
        label=source["label"],
        model=source["model"],
        hyperparameters=source["hyperparameters"],
        batch_size=batch_size,
        epochs=epochs,
        seed=1,
        output_dir=str(folder),
    )
    return replace(job, compute=replace(job.compute, backend=backend)) if backend != "tensorflow" else job


def ours(source: dict, folder: Path, *, batch_size: int, backend: str, interpreter: str | None) -> dict:
    """Measure our training process; a short training first determines the epochs of the measured one."""
    from slipway.components.trainer.launch import TrainingProcess

    epochs, result = 2, {}
    for _ in range(2):
        job = job_of(source, folder, batch_size=batch_size, epochs=epochs, backend=backend)
        file = folder / "job.json"
        file.write_text(job.to_json())
        began = time.perf_counter()
        with TrainingProcess(
            file, import_roots=[PROJECT], compute=job.compute, interpreter=interpreter
        ) as process:
            result = process.wait(show=lambda _: None)
        wall_s = time.perf_counter() - began
        step_s = result["speed"]["step_ms"] / 1e3
        epochs = max(2, round(STEPPING_S / step_s / (result["steps"] / epochs)))
    return {
        "examples_per_s": batch_size / step_s,
        "waiting_share": result["speed"]["input_waiting_share"],
        "process_s": wall_s,
        "fit_s": result["fit_s"],
        "devices": result["devices"],
    }


def bound(source: dict, folder: Path, *, batch_size: int) -> dict:
    """Measure one compiled loop of the same model's train_step over the same examples in memory."""
    import tensorflow as tf

    from slipway.components.trainer.job_layout import some_rows
    from slipway.components.trainer.user_model import build_model

    job = job_of(source, folder, batch_size=batch_size, epochs=1)
    features, labels, _ = some_rows(job.train_files, job, rows=10**7)
    count = len(labels) // batch_size
    columns = {name: tf.constant(values) for name, values in features.items()}
    label = tf.constant(labels)
    model = build_model(job.model, job.inputs, job.hyperparameters)
    model.optimizer.build(model.trainable_variables)

    @tf.function
    def loop(steps: tf.Tensor) -> None:
        for step in tf.range(steps):
            first = (step % count) * batch_size
            batch = {
                name: tf.ensure_shape(values[first : first + batch_size], [batch_size, *values.shape[1:]])
                for name, values in columns.items()
            }
            model.train_step((batch, tf.ensure_shape(label[first : first + batch_size], [batch_size, 1])))

    loop(tf.constant(2))
    steps = 20
    while True:
        began = time.perf_counter()
        loop(tf.constant(steps))
        took = time.perf_counter() - began
        if took > STEPPING_S / 2:
            return {"examples_per_s": steps * batch_size / took}
        steps = round(steps * max(2, min(20, STEPPING_S / took)))


def fixed_cost(folder: Path, rows: int) -> dict:
    """Measure our run_fn for one epoch of one batch, including its process, export and imports.

    It is imported as the product's processes import it, see `slipway/components/large_imports.py`.
    """
    began = time.perf_counter()
    from slipway.components.large_imports import large_imports

    with large_imports(keep=True):
        from slipway.components.trainer.run_fn import run_fn
        from slipway.pipeline.config.train import TrainConfig

    files = [str(next((folder / "rows").iterdir()))]
    batch_size = min(5000, rows // 8)  # at most the rows of one file
    train = TrainConfig(model="benchmarks.template_taxi.build_model", batch_size=batch_size, epochs=1)
    settings = train.run_fn_settings()
    run_fn(
        SimpleNamespace(
            transform_output=str(folder / "transform"),
            schema_path=str(folder / "schema.pbtxt"),
            train_files=files,
            eval_files=files,
            serving_model_dir=str(folder / "fixed" / "model"),
            model_run_dir=str(folder / "fixed" / "run"),
            hyperparameters=None,
            custom_config=settings
            | {"label": "tips_xf", "raw_label": "tips", "weight": None, "pass_through": []},
        )
    )
    used = os.times()
    cpu_s = used.user + used.system + used.children_user + used.children_system
    return {"seconds": time.perf_counter() - began, "cpu_s": cpu_s}


# The benchmark: the order of the measurements, and the tables.


def measured(name: str, **arguments: object) -> dict:
    """Run one measurement in a new process."""
    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        "--measure",
        name,
        json.dumps(arguments, default=str),
    ]
    environment = {
        **os.environ,
        "TF_USE_LEGACY_KERAS": "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": str(PROJECT),
    }
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name}: {done.stderr[-3000:]}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    print(
        name, arguments.get("source", {}).get("name", ""), arguments.get("batch_size", ""), found, flush=True
    )
    return found


def measure(name: str, arguments: dict) -> dict:
    """Run one measurement in this process."""
    arguments = {key: Path(v) if key == "folder" else v for key, v in arguments.items()}
    with tempfile.TemporaryDirectory() as own:
        if name in ("ours", "bound"):
            arguments["folder"] = Path(own)
        return {
            "prepare_template": prepare_template,
            "stock": stock,
            "ours": ours,
            "bound": bound,
            "fixed_cost": fixed_cost,
        }[name](**arguments)


def workload_source(name: str, output: Path) -> dict:
    """Run a workload's pipeline up to Transform, and return its examples and its settings for training."""
    from slipway.pipeline.config import load_workload

    config = load_workload(Path(f"workloads/{name}/workload.yaml"), root=PROJECT)
    command = [sys.executable, "local_runner.py", "run", name, "--to", "Transform", "--output", str(output)]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    transform = output / "artifacts" / name / "Transform"
    return {
        "name": name,
        "transform": str(next((transform / "transform_graph").iterdir())),
        "train_files": [str(p) for p in transform.glob("transformed_examples/*/Split-train/*")],
        "label": config.transform.label,
        "images": config.train.images,
        "model": config.train.model,
        "hyperparameters": config.train.hyperparameters,
        "batch_size": config.train.batch_size,
    }


def best(runs: list[dict], key: str = "examples_per_s") -> float:
    """Return the best of several rounds."""
    return max(run[key] for run in runs)


def main() -> None:
    """Measure, and print the tables of docs/benchmarks.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=80_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--jax", help="an interpreter with Keras and JAX", default=None)
    parser.add_argument("--measure", nargs=2)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure[0], json.loads(options.measure[1]))), flush=True)
        os._exit(0)  # TensorFlow Transform and Beam sometimes crash while Python shuts down
    with tempfile.TemporaryDirectory(prefix="bench-trainer-") as name:
        tables(Path(name), options)


def tables(folder: Path, options: argparse.Namespace) -> None:
    """Run all measurements and print the tables."""
    measured("prepare_template", folder=folder, rows=options.rows)
    template = {
        "name": "template",
        "transform": str(folder / "transform"),
        "train_files": [str(path) for path in (folder / "rows").iterdir()],
        "label": "tips_xf",
        "model": "benchmarks.template_taxi.build_model",
        "hyperparameters": {},
    }
    plain = {"backend": "tensorflow", "interpreter": None}
    rounds = range(options.rounds)
    stock_runs = [measured("stock", folder=folder) for _ in rounds]
    stock_speed = best(stock_runs)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"\n{machine}, {date.today()}\n")
    rows = [("stock run_fn of the template, batch 40", stock_speed, "1", "")]
    for batch_size in (STOCK_BATCH, DEFAULT_BATCH, 1024):
        mine = [measured("ours", source=template, folder="", batch_size=batch_size, **plain) for _ in rounds]
        most = best([measured("bound", source=template, folder="", batch_size=batch_size) for _ in rounds])
        rows.append(
            (
                f"ours, batch {batch_size}",
                best(mine),
                f"{best(mine) / stock_speed:.1f}",
                f"{best(mine) / most:.2f}",
            )
        )
        rows.append((f"bound, batch {batch_size}", most, f"{most / stock_speed:.1f}", "1"))
    print("\n| what | examples/s | x stock | of the bound |\n| --- | --- | --- | --- |")
    for what, speed, to_stock, to_bound in rows:
        print(f"| {what} | {speed:,.0f} | {to_stock} | {to_bound} |")
    fixed = min(
        (measured("fixed_cost", folder=folder, rows=options.rows) for _ in rounds),
        key=lambda found: found["seconds"],
    )
    print("\nfixed cost of a training, with imports, process and export:", end=" ")
    print(f"{fixed['seconds']:.1f} s, {fixed['cpu_s']:.1f} s of CPU\n")
    print("| workload | backend | examples/s | of the bound | waiting for input |")
    print("| --- | --- | --- | --- | --- |")
    for workload in ("taxi", "digits"):
        source = workload_source(workload, folder / "output")
        size = source.pop("batch_size")
        most = best([measured("bound", source=source, folder="", batch_size=size) for _ in rounds])
        for backend, interpreter in (("tensorflow", None), ("jax", options.jax)):
            if backend == "jax" and interpreter is None:
                continue
            runs = [
                measured(
                    "ours",
                    source=source,
                    folder="",
                    batch_size=size,
                    backend=backend,
                    interpreter=interpreter,
                )
                for _ in rounds
            ]
            waiting = min(run["waiting_share"] for run in runs)
            speed = f"{best(runs):,.0f} | {best(runs) / most:.2f}"
            print(f"| {workload}, batch {size} | {backend} | {speed} | {waiting:.0%} |", flush=True)


if __name__ == "__main__":
    main()
