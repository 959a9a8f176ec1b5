"""A train function for the model: one or several steps in one call of TensorFlow, over blocks of batches.

Keras' own function asks the iterator in each step whether there is a batch, and wraps every result. For steps
of a few hundred microseconds, this and tf.data's handover of each batch take a third of the time or more.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.loop.step_time import InputWait


def takes_blocks(model: Any, devices: Devices) -> bool:
    """Return True if `train_in_blocks` works: TensorFlow, one device, and no custom train function.

    Args:
        model: compiled, with its `steps_per_execution` set.
    """
    is_plain = devices.backend == "tensorflow" and devices.strategy is None and not model.run_eagerly
    own = type(model).make_train_function is not keras.Model.make_train_function
    return is_plain and not own


def train_in_blocks(model: Any, blocks: tf.data.Dataset, wait: InputWait | None = None) -> None:
    """Make `model.fit` take blocks from now on: one element holds several batches.

    Args:
        model: one for which `takes_blocks` returns True.
        blocks: [steps, batch, ...] each, of static shape; the steps of an execution are a multiple of theirs.
        wait: measures how long blocks are waited for; None: not measured.
    """
    if model.train_function is not None:
        return  # made for an earlier fit; it retraces by itself for blocks of another size
    batch = tf.nest.map_structure(lambda spec: tf.TensorSpec(spec.shape[1:], spec.dtype), blocks.element_spec)
    model._symbolic_build(data_batch=batch)  # as fit does with its first element, which is not a batch here
    model.train_function = _function(model, wait)


def _function(model: Any, wait: InputWait | None) -> Callable[[Any], Any]:
    """Make fit's function of its iterator: it runs the blocks of one execution and returns the last logs."""
    steps = model.steps_per_execution
    # Keras converts no train step by AutoGraph; one of the user's own may count on it here.
    is_own = type(model).train_step is not keras.Model.train_step
    one_step = tf.function(
        model.train_step, reduce_retracing=True, jit_compile=model.jit_compile, autograph=is_own
    )

    def steps_of(block: Any) -> Any:
        def step(number: Any) -> Any:
            return one_step(tf.nest.map_structure(lambda values: values[number], block))

        return _repeated(step, tf.nest.flatten(block)[0].shape[0])

    @tf.autograph.experimental.do_not_convert
    def execution(iterator: Any) -> Any:
        in_block = tf.nest.flatten(iterator.element_spec)[0].shape[0]

        def block() -> Any:
            return wait.next_of(iterator) if wait else iterator.get_next()

        return _repeated(lambda _: steps_of(block()), steps // in_block)

    function: Callable[[Any], Any] = tf.function(execution, reduce_retracing=True)
    return function


def _repeated(call: Callable[[Any], Any], times: int) -> Any:
    """Call a function several times in sequence, with the number of each call; return the last result."""
    first = call(0)
    if times == 1:
        return first
    _, last = tf.while_loop(
        lambda number, _: number < times,
        lambda number, _: (number + 1, call(number)),
        [tf.constant(1), first],
        parallel_iterations=1,
    )
    return last
