"""Every model that comes along compiles under XLA, has static shapes, and learns what it is there for."""

import importlib

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

ROWS = 256
SIZE = 12
IMAGE = {"image": Feature(name="image", dtype="int64", shape=(SIZE, SIZE))}
TABLE = {
    feature.name: feature
    for feature in (
        Feature(name="fare", dtype="float32"),
        Feature(name="seats", dtype="int64"),
        Feature(name="sizes", dtype="float32", shape=(2, 3)),
        Feature(name="hour", dtype="int64", categories=24),
        Feature(name="tags", dtype="int64", categories=5, shape=(3,)),
        Feature(name="company", dtype="int64", categories=1000),
    )
}


RAW_IMAGE = {"image": Feature(name="image", dtype="uint8", shape=(SIZE, SIZE, 1))}


def raw_images():
    rows, labels = images()
    return {"image": rows["image"][..., None].astype("uint8")}, labels


def images():
    """A bright square at the left is class 0, in the middle 1, at the right 2."""
    random = np.random.default_rng(0)
    labels = np.arange(ROWS) % 3
    pixels = random.integers(0, 60, (ROWS, SIZE, SIZE))
    for row, label in enumerate(labels):
        top = random.integers(0, SIZE - 4)
        pixels[row, top : top + 4, 4 * label : 4 * label + 4] += 150
    return {"image": pixels.astype("int32")}, labels.astype("float32")[:, None]


def table():
    """The label says whether the company's number is odd: only its embedding can know."""
    random = np.random.default_rng(0)
    rows = {}
    for name, feature in TABLE.items():
        shape = (ROWS, *feature.shape)
        if feature.dtype == "float32":
            rows[name] = random.normal(size=shape).astype("float32")
        else:
            rows[name] = random.integers(0, min(feature.categories or 9, 40), shape).astype("int32")
    return rows, (rows["company"] % 2).astype("float32")


def build(module, features, **hyperparameters):
    import keras

    keras.utils.set_random_seed(1)
    return importlib.import_module(f"slipway.components.trainer.models.{module}").build_model(
        features, hyperparameters
    )


@pytest.mark.parametrize(
    ("module", "features", "data", "hyperparameters"),
    [
        ("residual", IMAGE, images, {"classes": 3, "filters": [4, 8], "blocks": 1, "learning_rate": 0.01}),
        (
            "cnn",
            RAW_IMAGE,
            raw_images,
            {
                "classes": 3,
                "filters": [8],
                "units": 16,
                "augment": {"shift": 0.05, "zoom": 0.05, "brightness": 0.05, "contrast": 0.05},
            },
        ),
        ("wide_and_deep", TABLE, table, {"hidden_units": [16], "learning_rate": 0.03, "dropout": 0.0}),
    ],
)
def test_model_learns_as_one_xla_program_of_static_shapes(module, features, data, hyperparameters):
    import tensorflow as tf

    model = build(module, features, **hyperparameters)
    for layer in model.layers:
        outputs = layer.output if isinstance(layer.output, list) else [layer.output]
        assert all(None not in tensor.shape[1:] for tensor in outputs), layer.name
    model.jit_compile = True  # raises where XLA cannot compile an operation
    rows, labels = data()
    batches = tf.data.Dataset.from_tensor_slices((rows, labels)).batch(64, drop_remainder=True).repeat()
    history = model.fit(batches, epochs=2, steps_per_epoch=40, shuffle=False, verbose=0).history
    assert history["accuracy"][-1] > 0.95
    assert model.output.dtype == "float32"


@pytest.mark.parametrize(
    ("classes", "units", "loss"),
    [
        (None, 1, "mean_squared_error"),
        (2, 1, "binary_crossentropy"),
        (7, 7, "sparse_categorical_crossentropy"),
    ],
)
def test_number_of_classes_decides_the_end_of_the_model(classes, units, loss):
    model = build("wide_and_deep", TABLE, classes=classes)
    assert (model.output.shape, model.loss) == ((None, units), loss)


def test_one_class_is_refused():
    with pytest.raises(ComponentError, match=r"classes \(1\) must be a whole number >= 2"):
        build("wide_and_deep", TABLE, classes=1)


def test_flat_feature_is_an_image_once_its_shape_is_named():
    flat = {"image": Feature(name="image", dtype="int64", shape=(192,))}
    model = build("cnn", flat, image_shape=[8, 8, 3])
    assert model.output.shape == (None, 10)
    with pytest.raises(
        ComponentError, match=r"feature image of shape \(192,\) is not an image of shape \(192,\)"
    ):
        build("cnn", flat)
    with pytest.raises(ComponentError, match="is not an image of shape"):
        build("residual", flat, image_shape=[8, 8])


def test_image_model_refuses_a_table():
    with pytest.raises(ComponentError, match="takes one feature, the image; there are company, fare"):
        build("cnn", TABLE)


def test_bytes_are_scaled_to_one_and_other_pixels_are_left():
    bright = np.full((1, SIZE, SIZE), 255)
    for dtype, peak in (("int64", 1.0), ("float32", 255.0)):
        features = {"image": Feature(name="image", dtype=dtype, shape=(SIZE, SIZE))}
        model = build("cnn", features)
        scaled = next(layer for layer in model.layers if layer.name.startswith("rescaling"))
        assert float(np.max(scaled(bright.astype("float32")))) == pytest.approx(peak)
