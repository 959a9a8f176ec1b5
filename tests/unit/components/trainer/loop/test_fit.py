"""A fit that goes on within an epoch comes to the weights of one that was not interrupted."""

import time

import numpy as np
import pytest

from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.features import Feature
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.loop.preemption import Preemption
from slipway.components.trainer.settings.checkpoint import CheckpointSettings

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

STEPS = 4


def fitted(folder, optimizer, hosts):
    """The weights after three epochs, from the newest checkpoint in the folder on."""
    import keras
    import tensorflow as tf

    from slipway.components.trainer.loop.fit import Input, fit

    job = TrainingJob(
        train_files=("none",),
        eval_files=(),
        features=(Feature(name="x", dtype="float32"), Feature(name="y", dtype="float32")),
        label="y",
        model="keras.build_model",
        hyperparameters={},
        batch_size=2,
        epochs=3,
        seed=1,
        output_dir=str(folder),
        checkpoint_dir=str(folder),
        checkpoint=CheckpointSettings(steps=2, keep=10),
    )
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    model.compile(optimizer(), "mse", jit_compile=False)
    model.set_weights([np.array([[0.25]])])
    rows = np.random.default_rng(1).normal(size=(3 * STEPS, 2, 1)).astype("float32")
    data = Input(
        steps_per_epoch=STEPS,
        in_blocks=False,
        wait=None,
        batches_from=lambda step, _: tf.data.Dataset.from_tensor_slices((rows[step:], 3 * rows[step:])),
        eval_batches=None,
    )
    devices = Devices(kind="cpu", backend="tensorflow", words="", hosts=hosts)
    fit(model, job, data, Preemption(), began_at=time.time(), devices=devices)
    return model.get_weights()


def sgd():
    import keras

    return keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)


def scaled():
    import keras

    return keras.optimizers.LossScaleOptimizer(sgd())


@pytest.mark.parametrize("optimizer", [sgd, scaled])
@pytest.mark.parametrize("hosts", [Hosts(), Hosts(index=1, count=2)], ids=["alone", "second of two hosts"])
def test_weights_are_averaged_at_the_end_only(tmp_path, optimizer, hosts):
    undisturbed = fitted(tmp_path, optimizer, Hosts())
    for later in [each for each in tmp_path.glob("step-*") if int(each.stem[5:]) > 2]:
        later.unlink()
    assert max(int(each.stem[5:]) for each in tmp_path.glob("step-*")) == 2
    np.testing.assert_array_equal(fitted(tmp_path, optimizer, hosts), undisturbed)


def test_model_whose_loss_is_scaled_is_restored_a_second_time():
    import keras

    from slipway.components.trainer.loop.model_state import restore, snapshot

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(scaled(), "mse")
    model.optimizer.build(model.trainable_variables)
    state = snapshot(model)
    for _ in range(2):  # at its beginning, and to take the best epoch's weights at its end
        restore(model, state)
    assert len(snapshot(model)) == len(state)
