"""Models that take batches of several lengths, and models that would be served otherwise than trained."""

import numpy as np
import pytest
from small_job import small_job

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.features import Feature
from slipway.components.trainer.settings.input_cache import InputSettings

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

MODEL = """
import keras

def build_model(features, hyperparameters):
    words = keras.Input(features["words"].shape, dtype="int32", name="words")
    age = keras.Input((1,), name="age")
    vectors = keras.layers.Embedding(9, 4, mask_zero=hyperparameters["mask"])(words)
    pooled = POOLED
    model = keras.Model({"words": words, "age": age}, keras.layers.Dense(1)(pooled) + age)
    model.compile("sgd", loss="mse")
    return model
"""
ROWS = {
    "words": np.array([[1, 2, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0]], np.int32),
    "age": np.array([[0.5], [1.5]], np.float32),
}


def _job(model, **hyperparameters):
    features = (
        Feature(name="words", dtype="int64", shape=(6,), categories=9),
        Feature(name="age", dtype="float32"),
        Feature(name="y", dtype="float32"),
    )
    return small_job(
        train_files=("a",),
        features=features,
        model=model,
        hyperparameters=hyperparameters,
        batch_size=2,
        output_dir="",
        input=InputSettings(bucket_by_length={"words": [2, 4]}),
    )


@pytest.mark.parametrize(
    ("pooled", "mask", "words", "hint"),
    [
        ("keras.layers.GRU(4)(vectors)", True, "", ""),
        (
            "keras.layers.GlobalAveragePooling1D()(vectors)",
            False,
            "answer to a row changes by .* if its padding is cut off .words.",
            "mask_zero=True",
        ),
        (
            "keras.layers.Flatten()(vectors)",
            False,
            "takes words of one length only: lengths_2.py, line",
            "no Flatten",
        ),
        (
            "keras.layers.GRU(features['words'].shape[0] or 4)(vectors)",
            True,
            "has other weights for batches of several lengths of words",
            "from a hyperparameter",
        ),
    ],
)
def test_a_model_must_answer_alike_whatever_the_padding(module, pooled, mask, words, hint, request):
    import keras

    from slipway.components.trainer.any_length import require_any_length

    name = f"lengths_{request.node.callspec.indices['pooled']}"
    job = _job(module(name, MODEL.replace("POOLED", pooled)), mask=mask)
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        if words:
            with pytest.raises(ComponentError, match=words) as refused:
                require_any_length(job, ROWS)
            assert hint in refused.value.hint
        else:
            require_any_length(job, ROWS)
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
    finally:
        keras.config.set_dtype_policy("float32")


@pytest.mark.parametrize(
    ("answer", "words", "hint"),
    [
        (
            "keras.layers.Dense(1)(vectors)[:, :, 0] + age",
            r"the shape \(2, 6\), and \(2, 2\) if",
            "once per row",
        ),
        ("keras.layers.Dense(1)(pooled) + age * float('nan')", "is not a finite number", "division by 0"),
    ],
)
def test_answers_that_cannot_be_compared_are_refused(module, answer, words, hint, request):
    from slipway.components.trainer.any_length import require_any_length

    text = MODEL.replace("keras.layers.Dense(1)(pooled) + age", answer)
    text = text.replace("POOLED", "keras.layers.GRU(4)(vectors)")
    job = _job(module(f"answers_{request.node.callspec.indices['answer']}", text), mask=True)
    with pytest.raises(ComponentError, match=words) as refused:
        require_any_length(job, ROWS)
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("keras.layers.Dense(1)(pooled) + age", ""),
        ("keras.layers.Dense(1)(vectors)[:, :, 0] + age", "have the shape .None, 6., and .None, 2. if"),
        (
            "age + keras.layers.GlobalMaxPooling1D()(keras.layers.Conv1D(1, 3)(vectors))",
            "does not take words of 2: ",
        ),
    ],
)
def test_shapes_alone_show_what_no_length_may_change(module, answer, words, request):
    from slipway.components.trainer.any_length import model_of_any_length, require_one_answer_a_row
    from slipway.components.trainer.user_model import build_model

    text = MODEL.replace("keras.layers.Dense(1)(pooled) + age", answer)
    text = text.replace("POOLED", "keras.layers.GRU(4)(vectors)")
    job = _job(module(f"shapes_{request.node.callspec.indices['answer']}", text), mask=False)
    model = model_of_any_length(job, build_model(job.model, job.inputs, job.hyperparameters))
    if not words:
        require_one_answer_a_row(job, model)
        return
    with pytest.raises(ComponentError, match=words):
        require_one_answer_a_row(job, model)


def test_tensorflow_on_a_tpu_has_one_shape():
    from slipway.components.trainer.any_length import require_bucketing_devices

    require_bucketing_devices(Devices(kind="cpu", backend="tensorflow", words="CPU"))
    require_bucketing_devices(Devices(kind="tpu", backend="jax", words="TPU"))
    with pytest.raises(ComponentError, match="takes batches of one shape"):
        require_bucketing_devices(Devices(kind="tpu", backend="tensorflow", words="TPU"))
