"""What the settings make of a compiled model."""

from dataclasses import replace

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.devices import Devices
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


def test_built_optimizer_that_cannot_accumulate_is_told(model):
    from slipway.components.trainer.compile_options import set_step

    model.optimizer.build(model.trainable_variables)
    with pytest.raises(ComponentError, match="has its variables already"):
        set_step(model, StepSettings(accumulate_steps=2), CPU, batch_size=8, steps_per_epoch=8, limit=None)


def test_four_accumulated_steps_are_one_of_four_times_the_batch(model):
    import keras

    from slipway.components.trainer.compile_options import set_step

    random = np.random.default_rng(2)
    x = random.normal(size=(96, 4)).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    other = keras.models.clone_model(model)
    other.set_weights(model.get_weights())
    other.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    model.fit(x, y, batch_size=48, shuffle=False, verbose=0)
    set_step(other, StepSettings(accumulate_steps=4), CPU, batch_size=12, steps_per_epoch=8, limit=None)
    other.fit(x, y, batch_size=12, shuffle=False, verbose=0)
    for one, four in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(one, four, atol=1e-6)


def of_two(last):
    """An optimizer of the last layer, and another of the first."""
    import keras

    return keras.optimizers.MultiOptimizer(
        keras.optimizers.OptimizerMap(keras.optimizers.SGD(0.1), {f"{last}/.*": keras.optimizers.SGD(0.01)})
    )


def test_each_of_several_optimizers_accumulates(model):
    import keras

    from slipway.components.trainer.compile_options import accumulated_steps, set_step

    random = np.random.default_rng(2)
    x = random.normal(size=(96, 4)).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    model.compile(of_two(model.layers[-1].name), "mse")
    other = keras.models.clone_model(model)
    other.set_weights(model.get_weights())
    other.compile(of_two(model.layers[-1].name), "mse")
    model.fit(x, y, batch_size=48, shuffle=False, verbose=0)
    set_step(other, StepSettings(accumulate_steps=4), CPU, batch_size=12, steps_per_epoch=8, limit=None)
    other.fit(x, y, batch_size=12, shuffle=False, verbose=0)
    assert accumulated_steps(other) == 4
    for one, four in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(one, four, atol=1e-6)


def test_optimizers_that_nobody_knows_yet_are_not_taken_to_accumulate(model):
    import keras

    from slipway.components.trainer.compile_options import set_step

    model.compile(keras.optimizers.MultiOptimizer(lambda _: keras.optimizers.SGD(0.1)), "mse")
    with pytest.raises(ComponentError, match=r"^train\.accumulate_steps is for each .* asks a function"):
        set_step(model, StepSettings(accumulate_steps=4), CPU, batch_size=8, steps_per_epoch=8, limit=None)


def test_steps_per_execution_are_chosen_and_kept_when_given(model):
    from slipway.components.trainer.compile_options import set_step

    set_step(model, StepSettings(), CPU, batch_size=8, steps_per_epoch=100, limit=None)
    assert (model.steps_per_execution, model.jit_compile) == (50, False)
    set_step(
        model,
        StepSettings(steps_per_execution=7, xla="always"),
        CPU,
        batch_size=8,
        steps_per_epoch=100,
        limit=None,
    )
    assert (model.steps_per_execution, model.jit_compile) == (7, True)


def test_step_time_counts_every_position_of_a_convolution():
    import keras

    from slipway.components.trainer.compile_options import estimate_step_s

    model = keras.Sequential([keras.Input((28, 28, 1)), keras.layers.Conv2D(32, 3, padding="same")])
    flops = 6 * (3 * 3 * 1 * 32) * (28 * 28) * 1000
    assert estimate_step_s(model, CPU, batch_size=1000) == pytest.approx(flops / 5e9)


def test_step_of_a_model_for_any_length_is_estimated_at_the_longest():
    import keras

    from slipway.components.trainer.compile_options import estimate_step_s

    model = keras.Sequential([keras.Input((None, 4)), keras.layers.Conv1D(8, 3, padding="same")])
    assert estimate_step_s(model, CPU, batch_size=10, longest=64) == pytest.approx(
        6 * (3 * 4 * 8) * 64 * 10 / 5e9
    )


def test_step_time_of_a_model_without_known_shapes_is_unknown():
    import keras

    from slipway.components.trainer.compile_options import estimate_step_s

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, values):
            return self.dense(values)

    assert estimate_step_s(Own(), CPU, batch_size=8) == float("inf")


@pytest.mark.parametrize(
    ("kind", "precision", "policy"),
    [
        ("cpu", "auto", "float32"),
        ("tpu", "auto", "mixed_bfloat16"),
        ("cpu", "mixed_bfloat16", "mixed_bfloat16"),
    ],
)
def test_precision_is_that_of_the_device_or_as_told(kind, precision, policy):
    from slipway.components.trainer.compile_options import dtype_policy

    devices = Devices(kind=kind, backend="tensorflow", words="")
    assert dtype_policy(StepSettings(precision=precision), devices) == policy


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("steps_per_execution", StepSettings(steps_per_execution=2)),
        ("accumulate_steps", StepSettings(accumulate_steps=2)),
        ("xla", StepSettings(xla="always")),
    ],
)
def test_what_keras_cannot_do_on_several_tensorflow_devices_is_refused(model, name, step):
    from slipway.components.trainer.compile_options import set_step

    several = replace(CPU, replicas=2, strategy=object())
    with pytest.raises(ComponentError, match=rf"^train\.{name} cannot be used by Keras 3 with several"):
        set_step(model, step, several, batch_size=8, steps_per_epoch=100, limit=None)
    set_step(model, StepSettings(), several, batch_size=8, steps_per_epoch=100, limit=None)
    assert (model.steps_per_execution, model.jit_compile) == (1, False)
