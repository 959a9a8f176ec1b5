"""Images are changed while they are trained on, each in its own way, and never when the model answers."""

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

SIZE = 9
FEATURES = {"image": Feature(name="image", dtype="uint8", shape=(SIZE, SIZE, 1))}


def dots(rows):
    """A bright dot in the middle."""
    images = np.zeros((rows, SIZE, SIZE, 1), "float32")
    images[:, SIZE // 2, SIZE // 2] = 1.0
    return images


def test_each_image_is_moved_by_its_own_amount_and_keeps_its_sum():
    from slipway.components.trainer.models.augmentation import RandomMove

    move = RandomMove(shift=0.3, zoom=0.0)
    moved = np.asarray(move(dots(64), training=True))
    assert moved.sum(axis=(1, 2, 3)) == pytest.approx(np.ones(64), abs=1e-5)
    places = np.arange(SIZE)
    rows, columns = (moved.sum(axis=axes)[:, :] @ places for axes in ((2, 3), (1, 3)))
    for middle in (rows, columns):
        assert np.abs(middle - SIZE // 2).max() <= 0.3 * SIZE + 1e-4
        assert middle.std() > 0.5
    assert abs(np.corrcoef(rows, columns)[0, 1]) < 0.5
    assert not np.array_equal(moved, np.asarray(move(dots(64), training=True)))


def test_zoom_grows_and_shrinks_about_the_middle():
    from slipway.components.trainer.models.augmentation import RandomMove

    square = np.zeros((64, SIZE, SIZE, 1), "float32")
    square[:, 3:6, 3:6] = 1.0
    zoomed = np.asarray(RandomMove(shift=0.0, zoom=0.4)(square, training=True))
    areas = zoomed.sum(axis=(1, 2, 3))
    assert areas.min() < 8 < 10 < areas.max()
    np.testing.assert_allclose(zoomed, zoomed[:, ::-1, ::-1], atol=1e-5)


def test_answers_do_not_change_and_the_export_holds_no_random_operation():
    import keras
    import tensorflow as tf

    from slipway.components.trainer.models.cnn import build_model

    settings = {"filters": [4], "units": 8}
    augment = {"shift": 0.2, "zoom": 0.2, "flip": True, "brightness": 0.2, "contrast": 0.2}
    models = []
    for more in ({}, {"augment": augment}):
        keras.utils.set_random_seed(1)
        models.append(build_model(FEATURES, {**settings, **more}))
    plain, changing = models
    changing.set_weights([*changing.get_weights()])
    for one, other in zip(plain.trainable_variables, changing.trainable_variables, strict=True):
        other.assign(one)
    image = {"image": np.random.default_rng(0).integers(0, 256, (5, SIZE, SIZE, 1)).astype("uint8")}
    np.testing.assert_array_equal(plain(image, training=False), changing(image, training=False))
    assert not np.array_equal(changing(image, training=True), changing(image, training=True))
    served = tf.function(lambda given: changing(given, training=False)).get_concrete_function(
        {"image": tf.TensorSpec((None, SIZE, SIZE, 1), tf.uint8)}
    )
    names = {operation.type for operation in served.graph.get_operations()}
    assert not {name for name in names if "Random" in name or "Einsum" in name}


def test_seeds_of_augmentation_are_kept_with_the_checkpoint():
    from slipway.components.trainer.loop.model_state import snapshot
    from slipway.components.trainer.models.cnn import build_model

    settings = {"filters": [4], "units": 8, "dropout": 0.0}
    model = build_model(FEATURES, {**settings, "augment": {"shift": 0.2, "flip": True}})
    paths = [variable.path for variable in model.variables]
    assert sum("seed_generator_state" in path for path in paths) == 2
    before = snapshot(model)
    model({"image": np.zeros((2, SIZE, SIZE, 1), "uint8")}, training=True)
    after = snapshot(model)
    assert any(not np.array_equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("augment", "words"),
    [
        ({"shift": 0.7}, r"augment.shift \(0.7\) must be a number from 0 to 0.5"),
        ({"rotate": 0.1}, "augment does not know rotate"),
    ],
)
def test_wrong_augmentation_is_refused(augment, words):
    from slipway.components.trainer.models.cnn import build_model

    with pytest.raises(ComponentError, match=words):
        build_model(FEATURES, {"augment": augment})
