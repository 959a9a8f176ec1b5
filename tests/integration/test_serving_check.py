"""Models in the clean process: bad ones are stopped with the right reason, one of images passes."""

import errno
import json
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from slipway.components.event_lines import read_event
from slipway.components.model_gate.serving_rules import ServingLimits, serving_checks
from slipway.components.model_gate.verdict import conclude
from slipway.components.serving_check import check, client
from slipway.components.serving_check.clean_process import report_of
from slipway.components.serving_check.perturbations import Column

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

COLUMNS = [Column("x", "number"), Column("shop", "text"), Column("n", "integer", required=True)]
ROWS = 300


class Training:
    """Training's side of the bargain: the same numbers, computed with NumPy; the served models are real."""

    def columns(self):
        return COLUMNS

    def arguments(self):
        return ["n", "shop", "x"]

    def answers(self, rows):
        from slipway.components.serving_check.training_side import TrainingAnswers

        scaled = np.arange(len(rows)) / ROWS
        return TrainingAnswers(answers=scaled[:, None], features={"x_scaled": scaled[:, None]})


@pytest.fixture(scope="module")
def rows():
    import tensorflow as tf

    def example(number):
        message = tf.train.Example()
        features = message.features.feature
        features["x"].float_list.value.append(float(number))
        features["shop"].bytes_list.value.append(b"corner")
        features["n"].int64_list.value.append(number)
        features["label"].int64_list.value.append(1)
        return message.SerializeToString()

    return [example(number) for number in range(ROWS)]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Exports a model whose answer a function computes of the columns; returns its folder."""
    import tensorflow as tf

    spec = {
        "x": tf.io.FixedLenFeature([1], tf.float32, default_value=[0.0]),
        "shop": tf.io.FixedLenFeature([1], tf.string, default_value=[""]),
        "n": tf.io.FixedLenFeature([1], tf.int64),
    }
    tensor = {name: tf.TensorSpec([None, 1], each.dtype, name=name) for name, each in spec.items()}

    def call(answer):
        module = tf.Module()

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def serving_default(examples):
            return {"outputs": answer(tf.io.parse_example(examples, spec))}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def transform_features(examples):
            return {"x_scaled": tf.io.parse_example(examples, spec)["x"] / 150.0}

        serve_raw = tf.function(lambda columns: {"outputs": answer(columns)}).get_concrete_function(tensor)
        signatures = {
            "serving_default": serving_default.get_concrete_function(),
            "transform_features": transform_features.get_concrete_function(),
            "serve_raw": serve_raw,
        }
        folder = tmp_path_factory.mktemp("model")
        tf.saved_model.save(module, str(folder), signatures=signatures)
        return folder

    return call


def reasons(model, rows, **limits):
    report = check.check_served_model(model, rows, Training(), limit_s=300)
    checks = serving_checks(report, ServingLimits(**limits), metrics=["auc", "sparse_categorical_accuracy"])
    verdict = conclude(checks, metrics={}, baseline_metrics={"auc": 1})
    return report, ([] if verdict.blessed else list(verdict.reasons))


def test_wrong_model_is_stopped_for_each_of_its_faults(served, rows):
    import tensorflow as tf

    def wrong(columns):
        x = columns["x"] / 150.0  # training divides by 300
        busy = tf.linalg.matmul(tf.ones([600, 600]), tf.ones([600, 600]))[0, 0] * 0.0
        lost = tf.where(columns["n"] == 7, tf.constant(float("nan")), x)
        # Looks at the batch, and cannot do with a shop that it never saw.
        tf.debugging.assert_equal(tf.strings.regex_full_match(columns["shop"], ".*never seen.*"), False)
        return lost + busy + 0.5 * tf.reduce_mean(x) * tf.cast(tf.shape(x)[0] > 1, tf.float32)

    report, found = reasons(served(wrong), rows, max_p99_ms=0.01)
    said = "\n".join(found)
    assert "1 of 300 answers are NaN or infinite" in said
    assert "answers as training does a number in only one of them" in said
    assert "the transform differs in x_scaled by 0.99" in said
    assert "the transform or the model depends on the batch" in said
    assert "shop never seen before is refused with InvalidArgumentError" in said
    assert "n missing" not in said, "a row without a required column may be refused"
    assert "serving: p99 of 1 row" in said
    assert "needs at most 0.01 ms" in said
    assert "metric sparse_categorical_accuracy 1 output, needs one output for each class" in said
    assert report["latency"]["128"]["rows_per_s"] > 0
    assert 0 < report["memory_before_bytes"] <= report["memory_bytes"]


def test_model_that_ends_its_server_is_stopped_with_what_it_was_doing(served, rows):
    import tensorflow as tf

    def fatal(columns):
        is_far = tf.reduce_any(columns["x"] > 1e6)

        def abort():
            with tf.control_dependencies([tf.raw_ops.Abort(error_msg="no", exit_without_error=False)]):
                return tf.zeros_like(columns["x"])

        return tf.cond(is_far, abort, lambda: columns["x"] / 300.0)

    _, found = reasons(served(fatal), rows)
    assert found[0].startswith(
        "serving: loads and answers was killed by SIGABRT while answering perturbed rows"
    )


def test_process_that_does_not_start_is_reported_as_that(tmp_path, rows, monkeypatch):
    def start(*_, **__):
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(check, "ask_in_clean_process", start)
    with pytest.raises(BlockingIOError, match="Resource temporarily unavailable"):
        check.check_served_model(tmp_path, rows, Training(), limit_s=60)


def test_folder_without_a_model_is_stopped(tmp_path, rows, monkeypatch, capsys):
    """The client is called here: that it runs in a process of its own is seen above."""

    def called(model, folder, *, limit_s):
        assert client.main(str(model), str(folder), import_s=client.import_tensorflow()) == 0
        told = capsys.readouterr().out.splitlines()
        return report_of([event for line in told if (event := read_event(line))], ending="")

    monkeypatch.setattr(check, "ask_in_clean_process", called)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))  # the client refuses what no server has
    _, found = reasons(tmp_path, rows)
    assert len(found) == 1
    assert "cannot be loaded: OSError" in found[0]


IMAGE = [4, 5, 1]
IMAGES_SCHEMA = """
default_environment: "TRAINING"
default_environment: "SERVING"
feature { name: "pixels" type: INT presence { min_fraction: 1 } shape { dim { size: 20 } } }
feature { name: "file" type: BYTES presence { min_fraction: 1 } shape { dim { size: 1 } } }
feature { name: "kind" type: INT presence { min_fraction: 1 } shape { dim { size: 1 } } }
"""
IMAGES_WORKLOAD = f"""
    import keras

    from slipway.components.trainer.pixels import decoded_images, raw_pixels

    def preprocessing_fn(inputs):
        file = decoded_images(inputs["file"], {IMAGE})
        return {{"pixels": raw_pixels(inputs["pixels"]), "file": raw_pixels(file), "kind": inputs["kind"]}}

    def build_model(features, hyperparameters):
        inputs = {{
            name: keras.Input(feature.shape, dtype=feature.model_dtype, name=name)
            for name, feature in features.items()
        }}
        flat = [keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(each)) for each in inputs.values()]
        answer = keras.layers.Dense(3, activation="softmax")(keras.layers.Concatenate()(flat))
        model = keras.Model(inputs, answer)
        model.compile(loss="sparse_categorical_crossentropy")
        return model
"""


@pytest.fixture
def trained_on_images(tmp_path, monkeypatch):
    """Outputs of the nodes before the check for images, as numbers and as files, with initial weights."""
    import tensorflow as tf
    import tensorflow_transform as tft
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2
    from tfx.types.standard_artifacts import Model, ModelRun
    from tfx.utils.path_utils import serving_model_path

    from slipway.components.trainer.job import JOB_FILE, WEIGHTS_FILE, TrainingJob
    from slipway.components.trainer.raw_columns import serving_columns
    from slipway.components.trainer.saved_model_export import ServedModel
    from slipway.components.trainer.transformed_features import features_of
    from slipway.components.transform.component import Transform
    from slipway.pipeline.testing import run_component, schema_of, tiny_examples

    (tmp_path / "of_images.py").write_text(textwrap.dedent(IMAGES_WORKLOAD))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "images.pbtxt").write_text(IMAGES_SCHEMA)
    draw = np.random.default_rng(4)
    rows = [
        {
            "pixels": draw.integers(0, 256, 20).tolist(),
            # Of another size, and in colours.
            "file": [tf.io.encode_png(draw.integers(0, 256, (7, 6, 3), "uint8")).numpy()],
            "kind": [number % 3],
        }
        for number in range(20)
    ]
    schema = schema_of(tmp_path / "images.pbtxt", into=tmp_path)
    made = {"examples": tiny_examples(rows, into=tmp_path), "schema": schema}
    function = "of_images.preprocessing_fn"
    graph = run_component(Transform, into=tmp_path, **made, preprocessing_fn=function)["transform_graph"]

    transform = tft.TFTransformOutput(graph.uri)
    images = {"pixels": IMAGE, "file": IMAGE}
    job = TrainingJob(
        features=features_of(transform.transformed_metadata.schema, images=images), label="kind",
        model="of_images.build_model", hyperparameters={}, seed=1,
        train_files=("not read",), eval_files=(), batch_size=1, epochs=1, output_dir="",
    )  # fmt: skip
    model, model_run = Model(), ModelRun()
    model.uri, model_run.uri = str(tmp_path / "model"), str(tmp_path / "model_run")
    trained = sys.modules["of_images"].build_model(job.inputs, {})
    Path(model_run.uri).mkdir()
    Path(model_run.uri, JOB_FILE).write_text(job.to_json())
    trained.save_weights(Path(model_run.uri, WEIGHTS_FILE))
    columns = serving_columns(text_format.Parse(IMAGES_SCHEMA, schema_pb2.Schema()), ["kind"])
    served = ServedModel(model=trained, transform=transform, features=job.inputs, serving_columns=columns)
    served.save(serving_model_path(model.uri))
    return made | {"model": model, "model_run": model_run, "transform_graph": graph}


# What a file of an image becomes: tests/unit/components/trainer/test_pixels.py.
@pytest.mark.external
def test_model_of_images_passes_whether_they_come_as_numbers_or_as_files(trained_on_images, tmp_path):
    from tensorflow.python.saved_model import loader_impl
    from tfx.utils.path_utils import serving_model_path

    from slipway.components.serving_check.component import ServingCheck
    from slipway.pipeline.testing import run_component

    asked = run_component(
        ServingCheck, into=tmp_path, **trained_on_images, raw_label="kind", rows=20, limit_s=300.0
    )
    report = json.loads(Path(asked["report"].uri, "report.json").read_text())
    assert (report["rows"], report["outputs"], report["missing_signatures"]) == (20, 3, [])
    assert report["perturbed"] == 1 + 4 + 1 + 2, "both columns missing, numbers out of range, no image"
    assert report["signatures"]["serve_raw"]["inputs"].keys() == {"pixels", "file"}
    as_long_as_it_takes = dict.fromkeys(("max_p99_ms", "max_batch_p99_ms", "max_load_s"))
    limits = ServingLimits(**as_long_as_it_takes)
    checks = serving_checks(report, limits, metrics=["sparse_categorical_accuracy"])
    assert [each for each in checks if not each.passed] == []
    assert report["parity"]["largest"] <= 1e-5
    saved = loader_impl.parse_saved_model(serving_model_path(trained_on_images["model"].uri))
    nodes = saved.meta_graphs[0].object_graph_def.nodes
    of_keras = [node for node in nodes if node.user_object.identifier.startswith("_tf_keras")]
    assert not of_keras, "TFT's Keras layer is traced several times to be saved"
