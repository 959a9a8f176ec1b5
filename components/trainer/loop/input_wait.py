"""How long steps wait for their input, counted where they ask for it: within the compiled function."""

from typing import Any

import tensorflow as tf
from tensorflow.python.framework.config import is_op_determinism_enabled

from components.trainer.devices.devices import Devices


def input_wait(devices: Devices) -> "InputWait | None":
    """What counts the wait on these devices; None where it cannot be counted.

    A CPU's operations end when their work does. Other devices work behind, and may be busy while the next
    element is waited for. Where operations must be deterministic, TensorFlow lets none read the clock.
    """
    return InputWait() if devices.kind == "cpu" and not is_op_determinism_enabled() else None


class InputWait:
    """Adds up the time between asking an iterator for an element and having it."""

    def __init__(self) -> None:
        with tf.device("/cpu:0"):
            self._seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)

    @property
    def seconds(self) -> float:
        """All of it so far."""
        return float(self._seconds.numpy())

    def next_of(self, iterator: Any) -> Any:
        """The next element of an iterator; called while a function is traced."""
        asked = tf.timestamp()
        with tf.control_dependencies([asked]):
            element = iterator.get_next()
        with tf.control_dependencies(tf.nest.flatten(element)):
            had = tf.timestamp()
        self._seconds.assign_add(had - asked)
        return element
