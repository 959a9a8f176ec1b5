"""The class that a model's answer stands for, by name. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.saved_model.signatures import Signature

# As in Keras' and TFMA's binary accuracy: exactly one half is the first class.
_HALF = 0.5


def classes_of(papers: Mapping[str, object]) -> tuple[str, ...]:
    """The names that a version's manifest has for its answers; none where it holds no list of texts."""
    found = papers.get("classes")
    if not isinstance(found, list | tuple) or not all(isinstance(name, str) for name in found):
        return ()
    return tuple(found)


def names_classes(classes: Sequence[str], signature: Signature) -> bool:
    """Whether the answers of a signature are about these classes.

    Args:
        classes: in the order of their codes.

    Returns:
        True where it has one output, with a number for each class, or one number for two classes.
    """
    shapes = [tensor.shape for tensor in signature.outputs.values()]
    if not classes or len(shapes) != 1 or shapes[0] is None or len(shapes[0]) != 2:
        return False
    width = shapes[0][1]
    return width == len(classes) > 1 or (width == 1 and len(classes) == 2)


def class_codes(answers: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The code of the most probable class of each row; of an answer that is not a number it means nothing.

    Args:
        answers: [rows, classes], the probability of each; or [rows, 1], that of the second of two.
    """
    codes = np.argmax(answers, axis=1) if answers.shape[1] > 1 else answers[:, 0] > _HALF
    return codes.astype(np.int64)


def class_names(answers: npt.NDArray[Any], classes: Sequence[str]) -> list[str | None]:
    """The most probable class of each row.

    Args:
        answers: [rows, classes], the probability of each; or [rows, 1], that of the second of two.
        classes: in the order of their codes.

    Returns:
        A name for each row; None where an answer is not a number.
    """
    codes = class_codes(answers)
    sound = np.isfinite(answers).all(axis=1)
    return [classes[code] if ok else None for code, ok in zip(codes.tolist(), sound.tolist(), strict=True)]
