"""A real model that is worse on one slice only: the sum hides it, the gate does not.

Seen only here: the evaluation of a real model on real rows decides, slice by slice.
"""

import json
from pathlib import Path

import pytest

from slipway.pipeline.testing import run_component, schema_of

pytestmark = [
    pytest.mark.slow,
    # TFX's and TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

HOUR = 3


@pytest.fixture(scope="module")
def made(first_record):
    """The folders of the finished run's artifacts by node."""
    return {
        node.id: {key: artifacts[0]["uri"] for key, artifacts in node.outputs.items() if artifacts}
        for node in first_record.nodes
    }


@pytest.fixture(scope="module")
def trained(made):
    """The folder of the trained model's artifact."""
    return Path(made["Trainer"]["model"])


@pytest.fixture(scope="module")
def damaged(trained, tmp_path_factory):
    """The trained model, but for one hour of the day: there it answers the opposite."""
    import tensorflow as tf

    model = tf.saved_model.load(str(trained / "Format-Serving"))
    spec = {"trip_start_hour": tf.io.FixedLenFeature([1], tf.int64)}
    module = tf.Module()
    module.model = model

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serving_default(examples):
        [(name, answers)] = model.signatures["serving_default"](examples=examples).items()
        is_hour = tf.io.parse_example(examples, spec)["trip_start_hour"] == HOUR
        return {name: tf.where(is_hour, 1 - answers, answers)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def transform_features(examples):
        return model.signatures["transform_features"](examples=examples)

    folder = tmp_path_factory.mktemp("damaged")
    signatures = {"serving_default": serving_default, "transform_features": transform_features}
    tf.saved_model.save(module, str(folder / "Format-Serving"), signatures=signatures)
    return folder


@pytest.fixture(scope="module")
def verdict(made, trained, damaged, tmp_path_factory):
    """The gate's verdict on the damaged model, with the sound one as the baseline."""
    from tfx.types.standard_artifacts import Examples, Model, ModelBlessing

    from slipway.components.evaluator.component import Evaluator
    from slipway.components.model_gate.component import ModelGate
    from slipway.components.model_gate.eval_config import eval_config

    def model(folder):
        found = Model()
        found.uri = str(folder)
        return found

    config = eval_config(
        label="big_tip", metrics=["auc", "binary_accuracy"], slices=[["trip_start_hour"], ["payment_type"]]
    )
    examples = Examples()
    examples.uri, examples.split_names = made["Ingest"]["examples"], '["train", "eval"]'
    examples.set_string_custom_property("file_format", "tfrecords_gzip")
    examples.set_string_custom_property("payload_format", "FORMAT_TF_EXAMPLE")
    evaluated = run_component(
        Evaluator,
        into=tmp_path_factory.mktemp("evaluated"),
        examples=examples,
        model=model(damaged),
        baseline_model=model(trained),
        schema=schema_of("schemas/taxi.pbtxt", into=tmp_path_factory.mktemp("schema")),
        eval_config=config,
        example_splits=["eval"],
    )
    blessing = ModelBlessing()
    blessing.uri = str(tmp_path_factory.mktemp("blessing"))
    ModelGate.EXECUTOR_SPEC.executor_class._FUNCTION(
        model=model(damaged),
        evaluation=evaluated["evaluation"],
        blessing=blessing,
        metrics=["auc", "binary_accuracy"],
        thresholds={
            "overall": {"binary_accuracy": {"min": 0.8, "max_drop": 0.05}},
            "all": {"binary_accuracy": {"max_drop": 0.05, "confidence": 0.95}},
        },
        min_slice_rows=100,
        beat_trivial="one",
        sample_rows=50_000,
    )
    return json.loads(Path(blessing.uri, "verdict.json").read_text(encoding="utf-8"))


def test_model_that_is_worse_on_one_slice_only_is_refused_for_that_slice(verdict):
    assert verdict["blessed"] is False
    assert {check["slice"] for check in verdict["checks"] if not check["passed"]} == {
        f"trip_start_hour={HOUR}"
    }
    assert f"on trip_start_hour={HOUR}, needs at least" in verdict["reasons"][0]
    assert len(verdict["reasons"]) == 1
    assert sum(check["passed"] for check in verdict["checks"]) > 20, "the other slices were judged, too"
