"""Imports TensorFlow without its remarks about the processor and about missing GPUs."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from slipway.components.accelerators import share_gpus
from slipway.components.large_imports import large_imports

_MOST_SEARCHED = 1024
"""Characters of an error's message, of which a sentence is told."""


def import_tensorflow() -> Any:
    """Return the module `tensorflow`, set up for Keras 3."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")
    share_gpus()
    if "tensorflow" not in sys.modules:
        with stderr_to_nowhere(), large_imports():
            import tensorflow as tf
    else:
        import tensorflow as tf
    _look_only_at_the_begin_of_messages()
    return tf


def _look_only_at_the_begin_of_messages() -> None:
    """Limit how much of an error's message TensorFlow searches for names of nodes.

    A message may quote a whole request, and the time of the search grows with the square of its length.
    """
    from tensorflow.python.framework import error_interpolation

    search = error_interpolation.parse_message
    if search.__module__ == error_interpolation.__name__:  # not yet
        error_interpolation.parse_message = lambda message: search(message[:_MOST_SEARCHED])


@contextlib.contextmanager
def stderr_to_nowhere() -> Iterator[None]:
    """Discard the process's stderr; exceptions still propagate."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
