"""The taxi model compiles under XLA and has no shape that an accelerator would stumble over."""

import os

import numpy as np
import pytest

from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

FEATURES = {
    feature.name: feature
    for feature in (
        Feature(name="fare_scaled", dtype="float32"),
        Feature(name="payment", dtype="int64", categories=7),
        Feature(name="hour", dtype="int64", categories=24),
    )
}


@pytest.fixture
def model():
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")
    import keras

    from workloads.taxi.model import build_model

    keras.utils.set_random_seed(1)
    return build_model(FEATURES, {"hidden_units": [8], "dropout": 0.0, "learning_rate": 0.05})


@pytest.fixture
def rows():
    """256 rows whose label is the payment category being 1."""
    random = np.random.default_rng(0)
    payment = random.integers(0, 7, (256, 1)).astype("int32")
    features = {
        "fare_scaled": random.normal(size=(256, 1)).astype("float32"),
        "payment": payment,
        "hour": random.integers(0, 24, (256, 1)).astype("int32"),
    }
    return features, (payment == 1).astype("float32")


def test_model_trains_under_xla(model, rows):
    features, label = rows
    model.jit_compile = True
    losses = model.fit(features, label, batch_size=64, epochs=5, verbose=0).history["loss"]
    assert model.jit_compile is True
    assert losses[-1] < 0.5 * losses[0]


def test_no_shape_but_the_batch_is_dynamic(model):
    shapes = [tensor.shape for layer in model.layers for tensor in [layer.output] if hasattr(tensor, "shape")]
    assert len(shapes) > 5
    assert all(size is not None for shape in shapes for size in shape[1:])


def test_output_is_one_float32_probability_a_row(model, rows):
    features, _ = rows
    outputs = model.predict(features, verbose=0)
    assert (outputs.shape, outputs.dtype) == ((256, 1), np.float32)
    assert outputs.min() >= 0
    assert outputs.max() <= 1


def test_unknown_hyperparameter_is_refused_by_name():
    from workloads.taxi.model import build_model

    with pytest.raises(TypeError, match="learning_rat"):
        build_model(FEATURES, {"learning_rat": 1})
