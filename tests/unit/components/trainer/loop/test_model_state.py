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
