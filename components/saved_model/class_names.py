"""Names the class that a model predicts. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.saved_model.signatures import Signature

# As in Keras' and TFMA's binary accuracy: exactly one half is the first class.
_HALF = 0.5


def classes_of(provenance: Mapping[str, object]) -> tuple[str, ...]:
    """Return the class names in a version's manifest; none if it holds no list of text."""
    found = provenance.get("classes")
    if not isinstance(found, list | tuple) or not all(isinstance(name, str) for name in found):
        return ()
    return tuple(found)


def names_classes(classes: Sequence[str], signature: Signature) -> bool:
    """Return True if the answers of a signature refer to these classes.

    Args:
        classes: in the order of their codes.

    Returns:
        True if it has one output, with a number for each class, or one number for two classes.
    """
    shapes = [tensor.shape for tensor in signature.outputs.values()]
    if not classes or len(shapes) != 1 or shapes[0] is None or len(shapes[0]) != 2:
        return False
    width = shapes[0][1]
    return width == len(classes) > 1 or (width == 1 and len(classes) == 2)


def class_codes(answers: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the code of each row's most probable class; it is meaningless if an answer is NaN.

    Args:
        answers: [rows, classes], the probability of each class; or [rows, 1], that of the second of two.
    """
    codes = np.argmax(answers, axis=1) if answers.shape[1] > 1 else answers[:, 0] > _HALF
    return codes.astype(np.int64)


def class_names(answers: npt.NDArray[Any], classes: Sequence[str]) -> list[str | None]:
    """Return the name of each row's most probable class.

    Args:
        answers: [rows, classes], the probability of each class; or [rows, 1], that of the second of two.
        classes: in the order of their codes.

    Returns:
        A name for each row; None if an answer is not finite.
    """
    codes = class_codes(answers)
    sound = np.isfinite(answers).all(axis=1)
    return [classes[code] if ok else None for code, ok in zip(codes.tolist(), sound.tolist(), strict=True)]
