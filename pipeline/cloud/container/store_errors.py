"""Turns the errors of TFX's file systems, which are TensorFlow's or Python's, into readable ones."""

from collections.abc import Iterator
from contextlib import contextmanager

from slipway.components.errors import ComponentError

_MOST_SAID = 300


@contextmanager
def told_store_errors(what: str) -> Iterator[None]:
    """Raise an error of a store, or of this machine's disk, as one of ours.

    Args:
        what: what does not work then, e.g. "gs://b/x cannot be copied to /tmp/y".

    Raises:
        ComponentError: the store refused or did not answer, something is gone, or the disk is full.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and not _is_tensorflows(error):
            raise
        said = str(error) or str(error.__cause__ or type(error).__name__)  # TFX's "not found" says nothing
        raise ComponentError(
            f"{what}: {' '.join(said.split())[:_MOST_SAID]}",
            hint="the task's account needs to list, read and write there, and its disk room for a copy; then "
            "run the task again",
        ) from error


def _is_tensorflows(error: Exception) -> bool:
    from tensorflow import errors  # what raises one has imported it

    return isinstance(error, errors.OpError)
