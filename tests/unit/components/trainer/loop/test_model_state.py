"""The state of a model and of its optimizer, taken and restored."""

import pytest

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def test_model_whose_loss_is_scaled_is_restored_a_second_time():
    import keras

    from slipway.components.trainer.loop.model_state import restore, snapshot

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    averaged = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    model.compile(keras.optimizers.LossScaleOptimizer(averaged), "mse")
    model.optimizer.build(model.trainable_variables)
    state = snapshot(model)
    for _ in range(2):  # at its beginning, and to take the best epoch's weights at its end
        restore(model, state)
    assert len(snapshot(model)) == len(state)


def test_state_of_a_model_in_the_scope_of_several_devices_is_restored_outside_of_it():
    import keras
    import numpy as np
    import tensorflow as tf

    from slipway.components.trainer.loop.model_state import build_optimizer, restore, snapshot

    def made():
        with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
            model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
            model.compile(keras.optimizers.Adam(0.1), "mse")
        return model

    before, after = made(), made()
    build_optimizer(before)
    restore(after, snapshot(before))
    for one, other in zip(snapshot(after), snapshot(before), strict=True):
        np.testing.assert_array_equal(one, other)
