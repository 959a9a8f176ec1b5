"""The learning rate over the updates: multiplied by the batch, and warmed up."""

import numpy as np
import pytest

from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.settings.learning_rate import LearningRateSettings
from slipway.components.trainer.settings.step import StepSettings

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]
CPU = Devices(kind="cpu", backend="tensorflow", words="CPU")


@pytest.fixture
def model():
    import keras

    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    return model


def rate(model):
    return float(model.optimizer.learning_rate)


def test_learning_rate_is_multiplied_by_the_rule(model):
    from slipway.components.trainer.learning_rate import scale_learning_rate

    settings = LearningRateSettings(scale="sqrt", base_batch_size=256)
    assert scale_learning_rate(model, settings, batch_size=4096) == 4.0
    assert rate(model) == pytest.approx(0.4)


def test_learning_rate_warms_up_to_its_value(model):
    from slipway.components.trainer.learning_rate import scale_learning_rate

    settings = LearningRateSettings(scale="linear", base_batch_size=8, warmup_steps=4)
    scale_learning_rate(model, settings, batch_size=16)
    x = np.zeros((2, 4), "float32")
    rates = []
    for _ in range(6):
        rates.append(rate(model))
        model.train_on_batch(x, x[:, :1])
    assert rates == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.2, 0.2])


@pytest.mark.parametrize(("warmup_steps", "rates"), [(0, [0.2, 0.02]), (4, [0.05, 0.005])])
def test_each_of_several_optimizers_keeps_its_share_of_the_learning_rate(model, warmup_steps, rates):
    import keras

    from slipway.components.trainer.learning_rate import scale_learning_rate

    last = f"{model.layers[-1].name}/.*"
    each = keras.optimizers.OptimizerMap(keras.optimizers.SGD(0.1), {last: keras.optimizers.SGD(0.01)})
    model.compile(keras.optimizers.MultiOptimizer(each), "mse")
    settings = LearningRateSettings(scale="linear", base_batch_size=8, warmup_steps=warmup_steps)
    scale_learning_rate(model, settings, batch_size=16)
    found = [float(each.default_optimizer.learning_rate), float(each[last].learning_rate)]
    assert found == pytest.approx(rates)
    x = np.zeros((2, 4), "float32")
    model.train_on_batch(x, x[:, :1])


def test_model_that_has_taken_steps_before_warms_up(model):
    from slipway.components.trainer.learning_rate import scale_learning_rate

    x = np.zeros((2, 4), "float32")
    for _ in range(5):
        model.train_on_batch(x, x[:, :1])
    scale_learning_rate(model, LearningRateSettings(warmup_steps=2), batch_size=16)
    model.train_function = None  # a model from a file has none
    rates = []
    for _ in range(3):
        rates.append(rate(model))
        model.train_on_batch(x, x[:, :1])
    assert rates == pytest.approx([0.05, 0.1, 0.1])


def test_steps_that_only_add_up_gradients_do_not_shorten_the_warm_up(model):
    from slipway.components.trainer.compile_options import set_step
    from slipway.components.trainer.learning_rate import scale_learning_rate

    settings = LearningRateSettings(scale="linear", base_batch_size=8, warmup_steps=3)
    scale_learning_rate(model, settings, batch_size=16, accumulate_steps=2)
    set_step(model, StepSettings(accumulate_steps=2), CPU, batch_size=8, steps_per_epoch=8, limit=None)
    x = np.zeros((2, 4), "float32")
    rates = []
    for _ in range(8):
        rates.append(rate(model))
        model.train_on_batch(x, x[:, :1])
    assert rates[1::2] == pytest.approx([0.2 / 3, 0.4 / 3, 0.2, 0.2])  # those of the four updates


def test_schedule_of_the_model_stays_below_the_factor(model):
    import keras

    from slipway.components.trainer.learning_rate import scale_learning_rate

    decay = keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=1, decay_rate=0.5)
    model.compile(optimizer=keras.optimizers.SGD(decay), loss="mse")
    settings = LearningRateSettings(scale="linear", base_batch_size=8)
    scale_learning_rate(model, settings, batch_size=16)
    found = [float(model.optimizer._learning_rate(step)) for step in range(3)]
    assert found == pytest.approx([0.2, 0.1, 0.05])


@pytest.mark.parametrize(("warmup_steps", "rates"), [(0, [0.4, 0.2, 0.2]), (2, [0.2, 0.2, 0.2])])
def test_function_of_the_model_stays_below_the_factor(model, warmup_steps, rates):
    import keras

    from slipway.components.trainer.learning_rate import scale_learning_rate

    current = keras.Variable(0.2, trainable=False)
    model.compile(optimizer=keras.optimizers.SGD(lambda: current.value), loss="mse")
    settings = LearningRateSettings(scale="linear", base_batch_size=8, warmup_steps=warmup_steps)
    scale_learning_rate(model, settings, batch_size=16)
    x = np.zeros((2, 4), "float32")
    found = []
    for _ in range(3):
        found.append(rate(model))
        current.assign(0.1)
        model.train_on_batch(x, x[:, :1])
    assert found == pytest.approx(rates)
