"""Imports TensorFlow without its remarks about the processor and about missing GPUs."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from slipway.components.accelerators import share_gpus
from slipway.components.large_imports import large_imports


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
    return tf


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
