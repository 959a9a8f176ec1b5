"""Rewords TensorFlow's errors about rows at which a preprocessing_fn fails, with the place in its code."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.components.framework_errors import frames_in, sentence


@contextlib.contextmanager
def told_in_words(errors: type[Exception], *, memory: type[Exception]) -> Iterator[None]:
    """Reword an error of TensorFlow that is raised in the context.

    Args:
        errors: the class of errors to reword, `tf.errors.OpError`.
        memory: the class of those that say nothing about rows, `tf.errors.ResourceExhaustedError`.

    Raises:
        MemoryError: in place of an error of the class `memory`.
        ComponentError: in place of any other error of the class `errors`.
    """
    try:
        yield
    except memory as error:
        raise MemoryError(str(error)) from error
    except errors as error:
        words, place = in_words(str(error))
        raise ComponentError(
            f"preprocessing_fn fails at some rows: {words}" + (f" ({place})" if place else ""),
            hint="make it handle such values, or remove them from the data",
        ) from error


def in_words(message: str) -> tuple[str, str]:
    """Return what went wrong, and the place in the user's code; the place is empty if the error has none.

    Args:
        message: the message of an error of a graph's operation.
    """
    places = [f"{_shown(file)}:{line}" for file, line in frames_in(message) if _is_users(Path(file))]
    return sentence(message) or "no reason is given", places[-1] if places else ""


def _is_users(file: Path) -> bool:
    # A preprocessing_fn may call functions of other components, such as padded_lists.
    ours = Path(__file__).resolve().parents[1]
    return (
        "site-packages" not in file.parts and "<" not in file.name and not file.resolve().is_relative_to(ours)
    )


def _shown(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
