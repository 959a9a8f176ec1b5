"""Measures how the data stages scale with rows and features: python benchmarks/bench_scale.py

    python benchmarks/bench_scale.py --rows 15000 150000 600000 --features 10 100 1000 --max-cells 15000000

Each stage runs in a new process, with Beam's direct runner; imports are not counted. Three quarters of the
features are numbers (scaled by mean and deviation), one quarter are words out of 100 (looked up in a
vocabulary). Each feature is analyzed separately or, with --together, all features of a kind at once.
`stock-statistics` and `stock-transform` do the same work with TFX's executors instead of ours. The model of
`evaluate` costs next to nothing, so TFMA is what is measured. Prints a line of JSON per stage and size.
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
STAGES = ("ingest", "statistics", "stock-statistics", "transform", "stock-transform", "evaluate")
WORDS = 100
LABEL = "label"


def write_table(path: Path, rows: int, features: int) -> None:
    """Write a CSV of random numbers and words, with a label that depends on the first number."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    random = np.random.default_rng(0)
    texts = features // 4
    schema = pa.schema(
        [(f"n{i}", pa.float32()) for i in range(features - texts)]
        + [(f"w{i}", pa.string()) for i in range(texts)]
        + [(LABEL, pa.int64())]
    )
    words = np.array([f"word{i:02d}" for i in range(WORDS)])
    with pa_csv.CSVWriter(str(path), schema) as writer:
        for start in range(0, rows, 10_000):
            size = min(10_000, rows - start)
            numbers = [
                random.standard_normal(size).astype("float32").round(4) for _ in range(features - texts)
            ]
            picked = [words[random.integers(0, WORDS, size)] for _ in range(texts)]
            label = (numbers[0] + random.standard_normal(size) > 0).astype("int64")
            writer.write_batch(pa.record_batch([*numbers, *picked, label], schema=schema))


def preprocessing_fn(inputs):
    """Scale each number, and look up each word in its column's vocabulary."""
    import tensorflow as tf
    import tensorflow_transform as tft

    outputs = {}
    for name, value in inputs.items():
        dense = tf.sparse.to_dense(value) if isinstance(value, tf.SparseTensor) else value
        if name == LABEL:
            outputs[name] = dense
        elif value.dtype == tf.string:
            outputs[name] = tft.compute_and_apply_vocabulary(dense, vocab_filename=name)
        else:
            outputs[name] = tft.scale_to_z_score(dense)
    return outputs


def preprocessing_fn_together(inputs):
    """Do the same with one feature for all numbers and one for all words: two analyses, one vocabulary."""
    import tensorflow as tf
    import tensorflow_transform as tft

    dense = {
        name: tf.sparse.to_dense(value) if isinstance(value, tf.SparseTensor) else value
        for name, value in inputs.items()
    }
    label = dense.pop(LABEL)
    numbers = [value for value in dense.values() if value.dtype != tf.string]
    words = [value for value in dense.values() if value.dtype == tf.string]
    return {
        "numbers": tft.scale_to_z_score(tf.concat(numbers, axis=1), elementwise=True),
        "words": tft.compute_and_apply_vocabulary(tf.concat(words, axis=1), vocab_filename="words"),
        LABEL: label,
    }


def run_stage(stage: str, folder: Path, *, together: bool) -> dict[str, float]:
    """Run one stage in this process on the output of the previous stages in `folder`, and measure it."""
    os.environ["TF_USE_LEGACY_KERAS"] = "0"
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.proto import example_gen_pb2
    from tfx.types import standard_artifacts
    from tfx.utils import proto_utils

    import tensorflow_data_validation as tfdv  # isort: skip  (after tfx, which patches what it imports)

    def artifact(kind, name, **properties):
        found = kind()
        found.uri = str(folder / name)
        for key, value in properties.items():
            setattr(found, key, value)
        return [found]

    context = BaseBeamExecutor.Context(
        beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=none"],
        tmp_dir=str(folder / "beam"),
        unique_id="1",
    )
    examples = artifact(standard_artifacts.Examples, "examples", split_names='["train", "eval"]')
    statistics = artifact(standard_artifacts.ExampleStatistics, "statistics")
    schema = artifact(standard_artifacts.Schema, "schema")
    if stage == "ingest":
        from tfx.components.example_gen import utils

        from slipway.components.ingest.executor import Executor
        from slipway.components.ingest.options import Options
        from slipway.schemas.artifacts import Quarantine

        inputs = example_gen_pb2.Input(splits=[example_gen_pb2.Input.Split(name="all", pattern="table.csv")])
        properties = {
            "input_base": str(folder),
            "input_config": proto_utils.proto_to_json(inputs),
            "output_config": proto_utils.proto_to_json(utils.make_default_output_config(inputs)),
            "output_data_format": example_gen_pb2.FORMAT_TF_EXAMPLE,
            "output_file_format": example_gen_pb2.FORMAT_TFRECORDS_GZIP,
            "ingest": json.dumps(Options().to_json()),
        }
        outputs = {"examples": examples, "quarantine": artifact(Quarantine, "quarantine")}
        return measured(lambda: Executor(context).Do({}, outputs, properties))
    if "statistics" in stage:
        if stage == "statistics":
            from slipway.components.statistics_gen.executor import Executor
        else:
            from tfx.components.statistics_gen.executor import Executor

        properties = {"stats_options_json": tfdv.StatsOptions().to_json(), "exclude_splits": "[]"}
        found = measured(
            lambda: Executor(context).Do({"examples": examples}, {"statistics": statistics}, properties)
        )
        proto = tfdv.load_stats_binary(str(folder / "statistics/Split-train/FeatureStats.pb"))
        (folder / "schema").mkdir(exist_ok=True)
        tfdv.write_schema_text(
            tfdv.infer_schema(proto, infer_feature_shape=True), str(folder / "schema/schema.pbtxt")
        )
        return found
    if "transform" in stage:
        if stage == "transform":
            from slipway.components.transform.executor import Executor
        else:
            from tfx.components.transform.executor import Executor

        outputs = {
            "transform_graph": artifact(standard_artifacts.TransformGraph, f"{stage}-graph"),
            "transformed_examples": artifact(standard_artifacts.Examples, f"{stage}-transformed"),
        }
        for written in examples:  # the properties that Ingest sets
            written.set_string_custom_property("payload_format", "FORMAT_TF_EXAMPLE")
            written.set_string_custom_property("file_format", "tfrecords_gzip")
        properties = {
            "preprocessing_fn": f"bench_scale.preprocessing_fn{'_together' if together else ''}",
            "disable_statistics": 1,
            "force_tf_compat_v1": 0,
            "splits_config": None,
        }
        return measured(
            lambda: Executor(context).Do({"examples": examples, "schema": schema}, outputs, properties)
        )
    from tfx.components.evaluator.executor import Executor

    properties = {"eval_config": _eval_config(), "example_splits": "null"}
    _save_model(folder / "model" / "Format-Serving")
    model = artifact(standard_artifacts.Model, "model")
    outputs = {"evaluation": artifact(standard_artifacts.ModelEvaluation, "evaluation")}
    return measured(lambda: Executor(context).Do({"examples": examples, "model": model}, outputs, properties))


def _eval_config() -> str:
    import tensorflow_model_analysis as tfma
    from tfx.utils import proto_utils

    metrics = [tfma.MetricConfig(class_name="AUC"), tfma.MetricConfig(class_name="BinaryAccuracy")]
    return proto_utils.proto_to_json(
        tfma.EvalConfig(
            model_specs=[tfma.ModelSpec(label_key=LABEL)],
            slicing_specs=[tfma.SlicingSpec(), tfma.SlicingSpec(feature_keys=["w0"])],
            metrics_specs=[tfma.MetricsSpec(metrics=metrics)],
        )
    )


def _save_model(folder: Path) -> None:
    import tensorflow as tf

    class FirstNumber(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def __call__(self, examples):
            parsed = tf.io.parse_example(examples, {"n0": tf.io.FixedLenFeature([1], tf.float32)})
            return {"outputs": tf.sigmoid(parsed["n0"])}

    model = FirstNumber()
    tf.saved_model.save(model, str(folder), signatures={"serving_default": model.__call__})


def main() -> None:
    """Run each stage at each size in a new process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--features", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--max-cells", type=int, default=2_000_000, help="larger tables are left out")
    parser.add_argument("--stages", nargs="+", default=STAGES, choices=STAGES)
    parser.add_argument("--together", action="store_true", help="Transform takes all numbers as one feature")
    parser.add_argument("--one", nargs=2, metavar=("STAGE", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(run_stage(asked.one[0], Path(asked.one[1]), together=asked.together)))
        return
    environment = {
        **os.environ,
        "PYTHONPATH": f"{PROJECT}:{PROJECT / 'benchmarks'}",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    for features in asked.features:
        for rows in (rows for rows in asked.rows if rows * features <= asked.max_cells):
            with tempfile.TemporaryDirectory() as folder:
                table = Path(folder, "table.csv")
                write_table(table, rows, features)
                size = {"rows": rows, "features": features, "csv_mb": round(table.stat().st_size / 1e6, 1)}
                for stage in asked.stages:
                    command = [sys.executable, __file__, "--one", stage, folder]
                    command += ["--together"] * asked.together
                    done = subprocess.run(
                        command, env=environment, capture_output=True, text=True, check=False
                    )
                    if done.returncode:
                        sys.exit(f"{stage}: {done.stderr[-2000:]}")
                    found = {
                        key: round(value, 1)
                        for key, value in json.loads(done.stdout.splitlines()[-1]).items()
                    }
                    print(json.dumps({"stage": stage, **size, **found}), flush=True)


if __name__ == "__main__":
    main()
