"""Bad models in the clean process: each is stopped with the right reason."""

import sys

import numpy as np
import pytest

from slipway.components.event_lines import read_event
from slipway.components.model_gate.check import conclude
from slipway.components.model_gate.serving_rules import ServingLimits, serving_checks
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
    report = check.check_served_model(model, rows, Training(), limit_s=60)
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
