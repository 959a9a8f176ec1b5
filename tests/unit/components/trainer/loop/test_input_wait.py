"""How long steps wait for input is counted while they train, and tells a slow input from a fast one."""

import time

import pytest

from components.trainer.devices.devices import Devices
from components.trainer.features import Feature
from components.trainer.job import TrainingJob

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

STEPS, EPOCHS = 8, 3


def _model():
    import keras

    keras.utils.set_random_seed(1)
    entry = keras.Input((64,), name="x")
    hidden = keras.layers.Dense(1024, activation="relu")(keras.layers.Dense(1024)(entry))
    model = keras.Model({"x": entry}, keras.layers.Dense(1)(hidden))
    model.compile(optimizer="sgd", loss="mse")
    model.steps_per_execution = 4
    model.jit_compile = False
    return model


def _blocks(*, block_s, batch):
    """Blocks of two steps, each of which takes so many seconds to make."""
    import tensorflow as tf

    def made(number):
        time.sleep(block_s)
        return number

    def block(number):
        x = tf.random.stateless_normal([2, batch, 64], seed=[0, number])
        return {"x": x}, tf.reduce_sum(x, 2, keepdims=True)

    numbers = tf.data.Dataset.counter().map(lambda number: tf.numpy_function(made, [number], tf.int64))
    return numbers.map(lambda number: block(tf.ensure_shape(number, []))).prefetch(2)


@pytest.fixture
def told(tmp_path):
    """Trains on blocks that take so long to make; returns the measurements of the result."""
    from components.trainer.loop.execution import takes_blocks
    from components.trainer.loop.fit import Input, fit
    from components.trainer.loop.input_wait import InputWait
    from components.trainer.loop.preemption import Preemption
    from components.trainer.result import summarise

    def call(*, block_s, batch):
        job = TrainingJob(
            train_files=("none",),
            eval_files=(),
            features=(Feature(name="x", dtype="float32", shape=(64,)), Feature(name="y", dtype="float32")),
            label="y",
            model="none.build_model",
            hyperparameters={},
            batch_size=batch,
            epochs=EPOCHS,
            seed=1,
            output_dir=str(tmp_path),
            checkpoint_dir=str(tmp_path),
        )
        model = _model()
        assert takes_blocks(model, Devices(kind="cpu", backend="tensorflow", words=""))
        blocks = _blocks(block_s=block_s, batch=batch)
        data = Input(
            steps_per_epoch=STEPS, in_blocks=True, wait=InputWait(),
            batches_from=lambda _step, _rollbacks: blocks, eval_batches=None,
        )  # fmt: skip
        reached, attempts = fit(model, job, data, Preemption(), began_at=time.time())
        assert reached.clock.timed_steps == EPOCHS * STEPS - model.steps_per_execution
        return summarise(
            job, reached, attempts, is_wait_counted=True, constant_batch_step_s=None, input_advice=""
        )

    return call


def test_steps_that_wait_for_a_slow_input_are_told_as_input_bound(told):
    result = told(block_s=0.1, batch=64)
    # What a step computes is milliseconds; the rest of its 50 is waiting.
    assert result["speed"]["input_waiting_share"] > 0.5
    assert result["verdict"].startswith("input-bound: ")


def test_steps_that_find_their_input_made_are_told_as_compute_bound_beside_checkpoints(told):
    # Steps of some 30 ms: beside them even a core that others take for a while makes the next block in time.
    result = told(block_s=0.0, batch=1024)
    assert result["speed"]["input_waiting_share"] < 0.1
    assert result["verdict"].startswith("compute-bound: ")
