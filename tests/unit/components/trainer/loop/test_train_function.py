"""Several steps in one call over blocks do what Keras does, one batch at a time."""

import numpy as np
import pytest

from slipway.components.trainer.devices.devices import Devices

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

STEPS, BATCH = 12, 8


def compiled(steps_per_execution, **more):
    import keras

    keras.utils.set_random_seed(1)
    entry = keras.Input((3,), name="x")
    hidden = keras.layers.Dropout(0.5)(keras.layers.Dense(4, activation="relu")(entry))
    model = keras.Model({"x": entry}, keras.layers.Dense(1)(hidden))
    model.compile(optimizer="adam", loss="mse", metrics=["mae"], **more)
    model.steps_per_execution = steps_per_execution
    model.jit_compile = False
    return model


def batches():
    import tensorflow as tf

    random = np.random.default_rng(0)
    x = random.normal(size=(STEPS * BATCH, 3)).astype("float32")
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(1, keepdims=True)))
    return data.batch(BATCH, drop_remainder=True).repeat()


def fitted(model, data):
    history = model.fit(data, epochs=2, steps_per_epoch=STEPS, shuffle=False, verbose=0).history
    return history, [weight.numpy() for weight in (*model.weights, *model.optimizer.variables)]


@pytest.mark.parametrize(("in_one_call", "in_block"), [(6, 1), (6, 2), (6, 6), (1, 1)])
def test_blocks_train_as_batches_do(in_one_call, in_block):
    from slipway.components.trainer.loop.train_function import takes_blocks, train_in_blocks

    expected_history, expected = fitted(compiled(1), batches())
    model = compiled(in_one_call)
    assert takes_blocks(model, Devices(kind="cpu", backend="tensorflow", words=""))
    blocks = batches().batch(in_block, drop_remainder=True)
    train_in_blocks(model, blocks)
    history, found = fitted(model, blocks)
    assert history == {name: pytest.approx(values, rel=1e-5) for name, values in expected_history.items()}
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-6)
    assert int(model.optimizer.iterations.numpy()) == 2 * STEPS


def test_model_that_knows_its_layers_after_its_first_batch_only_takes_blocks_too():
    import keras

    from slipway.components.trainer.loop.train_function import train_in_blocks

    class Late(keras.Model):
        def __init__(self):
            super().__init__()
            self.head = keras.layers.Dense(1)

        def call(self, inputs):
            return self.head(inputs["x"])

    def late():
        keras.utils.set_random_seed(1)
        model = Late()
        model.compile(optimizer="adam", loss="mse", metrics=["mae"])
        model.jit_compile = False
        return model

    expected_history, expected = fitted(late(), batches())
    model, blocks = late(), batches().batch(1, drop_remainder=True)
    train_in_blocks(model, blocks)
    history, found = fitted(model, blocks)
    assert history == {name: pytest.approx(values, rel=1e-5) for name, values in expected_history.items()}
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-6)


def test_models_that_train_in_their_own_way_and_other_devices_are_left_to_keras():
    from slipway.components.trainer.loop.train_function import takes_blocks

    plain = Devices(kind="cpu", backend="tensorflow", words="")
    assert not takes_blocks(compiled(6, run_eagerly=True), plain)
    assert not takes_blocks(compiled(6), Devices(kind="cpu", backend="jax", words=""))
    several = Devices(kind="gpu", backend="tensorflow", words="", strategy=object())
    assert not takes_blocks(compiled(6), several)
    model = compiled(6)
    own = {"make_train_function": lambda self, force=False: None}
    model.__class__ = type("Own", (type(model),), own)
    assert not takes_blocks(model, plain)
