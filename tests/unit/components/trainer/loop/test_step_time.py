"""How long steps wait for input is counted while they train, and tells a slow input from a fast one."""

import time
from types import SimpleNamespace

import pytest
from small_job import small_job

from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

STEPS, EPOCHS, EXECUTION_S = 8, 3, 0.04


def _model():
    import keras

    entry = keras.Input((8,), name="x")
    model = keras.Model({"x": entry}, keras.layers.Dense(1)(entry))
    model.compile(optimizer="sgd", loss="mse")
    model.steps_per_execution = 4
    model.jit_compile = False
    return model


class _Clock:
    """A clock that moves on while an element is made, and for a fixed time with each execution of four steps.

    One that goes on by itself tells how busy the machine is, too: where a core was taken for some
    milliseconds while a block was asked for, that was counted as waiting, and steps of 1 ms were told as
    input-bound by an input that was always ready.
    """

    def __init__(self):
        self._now_s = 1.7e9

    def go_on(self, seconds):
        self._now_s += seconds

    def perf_counter(self):  # looked at before and after each execution
        self.go_on(EXECUTION_S)
        return self._now_s

    def timestamp(self):  # looked at within it
        import tensorflow as tf

        return tf.ensure_shape(tf.numpy_function(lambda: self._now_s, [], tf.float64), [])


def _waited_for(block_s):
    """Says of each block that it was waited for so long."""
    import tensorflow as tf

    from slipway.components.trainer.loop.step_time import InputWait

    class Waited(InputWait):
        def next_of(self, iterator):
            self._seconds.assign_add(tf.constant(block_s, tf.float64))
            return iterator.get_next()

    return Waited()


def _blocks():
    """Blocks of two steps."""
    import tensorflow as tf

    def block(number):
        x = tf.random.stateless_normal([2, 4, 8], seed=[0, number])
        return {"x": x}, tf.reduce_sum(x, 2, keepdims=True)

    return tf.data.Dataset.counter().map(block)


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Trains on blocks that are waited for so long; returns the measurements of the result."""
    from slipway.components.trainer.loop import step_time
    from slipway.components.trainer.loop.fit import Input, fit
    from slipway.components.trainer.loop.preemption import Preemption
    from slipway.components.trainer.loop.train_function import takes_blocks
    from slipway.components.trainer.result import summarise

    def call(*, block_s):
        clock = _Clock()
        monkeypatch.setattr(step_time, "time", SimpleNamespace(perf_counter=clock.perf_counter))
        job = small_job(
            features=(Feature(name="x", dtype="float32", shape=(8,)), Feature(name="y", dtype="float32")),
            model="slipway.components.trainer.models.cnn.build_model",
            epochs=EPOCHS,
            output_dir=str(tmp_path),
            checkpoint_dir=str(tmp_path),
        )
        model = _model()
        devices = Devices(kind="cpu", backend="tensorflow", words="")
        assert takes_blocks(model, devices)
        blocks = _blocks()
        data = Input(
            steps_per_epoch=STEPS, in_blocks=True, wait=_waited_for(block_s),
            batches_from=lambda _step, _rollbacks: blocks, eval_batches=None,
        )  # fmt: skip
        reached, attempts = fit(model, job, data, Preemption(), began_at=time.time(), devices=devices)
        assert reached.clock.timed_steps == EPOCHS * STEPS - model.steps_per_execution
        return summarise(
            job, reached, attempts, is_wait_counted=True, constant_batch_step_s=None, input_advice=""
        )

    return call


def test_steps_that_wait_for_a_slow_input_are_reported_as_input_bound(told):
    result = told(block_s=0.015)
    # An execution of 40 ms takes two blocks.
    assert result["speed"]["input_waiting_share"] == 0.75
    assert result["verdict"].startswith("input-bound: 75% ")


def test_steps_that_find_their_input_made_are_reported_as_compute_bound_beside_checkpoints(told):
    result = told(block_s=0.0)
    assert result["speed"]["input_waiting_share"] == 0
    assert result["verdict"].startswith("compute-bound: 0% ")


@pytest.fixture
def waited():
    """How long three elements are waited for that are made when they are asked for, by a function."""
    import tensorflow as tf

    from slipway.components.trainer.loop.step_time import InputWait

    class Elements:  # those of tf.data are made by threads of its own, at times before they are asked for
        def __init__(self, make):
            self._make = make

        def get_next(self):
            return tf.numpy_function(self._make, [], tf.int64)

    def call(make):
        wait = InputWait()
        next_of = tf.function(lambda: wait.next_of(Elements(make)))
        assert [int(next_of()) for _ in range(3)] == [7, 7, 7]
        return wait.seconds

    return call


def test_all_time_between_asking_for_an_element_and_having_it_is_waiting(waited, monkeypatch):
    import tensorflow as tf

    clock = _Clock()
    monkeypatch.setattr(tf, "timestamp", clock.timestamp)

    def slow():
        clock.go_on(0.5)
        return 7

    assert waited(slow) == 1.5
    assert waited(lambda: 7) == 0


def test_clock_is_that_of_the_machine(waited):
    def slow():
        time.sleep(0.01)
        return 7

    assert waited(slow) > 0
