"""Names the classes that a model predicts, of one output or of each of several. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.saved_model.signatures import Signature

# As in Keras' and TFMA's binary accuracy: exactly one half is the first class.
_HALF = 0.5


Classes = Mapping[str, tuple[str, ...]]
"""By output, the names of its classes in the order of their codes."""


def classes_of(provenance: Mapping[str, object]) -> Classes:
    """Return the class names in a version's manifest by output; the only output has the name "".

    Names that are not a list of texts are left out.
    """
    several = provenance.get("output_classes")
    named = {"": provenance.get("classes"), **(several if isinstance(several, Mapping) else {})}
    return {
        output: tuple(names)
        for output, names in named.items()
        if isinstance(names, list | tuple) and names and all(isinstance(name, str) for name in names)
    }


def classes_of_answers(classes: Classes, signature: Signature) -> Classes:
    """Return the class names that the answers of a signature refer to, by the signature's own outputs.

    Args:
        classes: as `classes_of` returns them.

    Returns:
        An entry for each output that has names, and a number for each of them, or one number for two. An
        output of texts names its classes itself.
    """
    outputs = signature.outputs
    if len(outputs) == 1:
        classes = dict.fromkeys(outputs, classes.get("", ()))
    return {
        name: classes[name]
        for name, tensor in outputs.items()
        if name in classes and tensor.dtype != "string" and _fits(classes[name], tensor.shape)
    }


def _fits(classes: Sequence[str], shape: Sequence[int | None] | None) -> bool:
    if not classes or shape is None or len(shape) != 2:
        return False
    return shape[1] == len(classes) > 1 or (shape[1] == 1 and len(classes) == 2)


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


def names_of_rows(names: Mapping[str, Sequence[str | None]], *, has_one_output: bool) -> list[Any]:
    """Return for each row the name of its class, or of several outputs the names by output.

    Args:
        names: by output, the name of each row's class; at least one output.
    """
    if has_one_output:
        [only] = names.values()
        return list(only)
    return [dict(zip(names, row, strict=True)) for row in zip(*names.values(), strict=True)]
