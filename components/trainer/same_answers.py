"""Compares the exported model's answers with those of the trained one, to rows that are made up.

The export builds the model anew and loads the trained weights. What is not among these is then as
`build_model` makes it in another process: an attribute that a callback has set, a constant of `np.random`,
features put together in the order of a set.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature

ROWS = 16
MOST_NUMBERS = 8
"""Of each output in a row."""
_FAR_OF_SPREAD, _FAR_OF_SIZE = 0.25, 0.02
"""A mean difference above these shares of the answers' spread and size is no rounding, nor bfloat16's."""


def sample_answers(model: Any, features: Mapping[str, Feature]) -> list[list[float]]:
    """Return a model's answers to made-up rows, which are the same in every process.

    Args:
        model: built, with its weights.
        features: its inputs, by name.

    Returns:
        [ROWS, numbers]; [] if the model does not take these rows, an answer is not finite, or the model,
        asked again, answers otherwise, as one that draws random numbers does.
    """
    numbers = np.random.default_rng(1)
    rows = {name: _made_up(features[name], numbers) for name in sorted(features)}
    try:
        answers, again = _answers(model, rows), _answers(model, rows)
    except Exception:  # the user's code may refuse such rows in any way
        return []
    is_steady = np.isfinite(answers).all() and np.allclose(answers, again, rtol=1e-3)
    return answers.tolist() if is_steady else []


def _answers(model: Any, rows: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    import keras

    told = model(rows, training=False)
    outputs = [told[name] for name in sorted(told)] if isinstance(told, Mapping) else [told]
    arrays = [np.asarray(keras.ops.convert_to_numpy(each), np.float64) for each in outputs]
    return np.concatenate([each.reshape(ROWS, -1)[:, :MOST_NUMBERS] for each in arrays], axis=1)


def require_same_answers(
    trained: Sequence[Sequence[float]], exported: Sequence[Sequence[float]], dotted_path: str
) -> None:
    """Reject an exported model that is not the trained one.

    Args:
        trained: as `sample_answers` returns them in the training process; [] if unknown.
        exported: those of the model that is exported.
        dotted_path: of the user's `build_model`.

    Raises:
        ComponentError: the answers differ by more than the rounding of another device or precision.
    """
    if not len(trained) or np.shape(trained) != np.shape(exported):
        return
    before, after = np.asarray(trained), np.asarray(exported)
    difference = np.abs(after - before).mean(axis=0)
    spread = np.maximum(before.std(axis=0), after.std(axis=0))
    if (difference <= _FAR_OF_SPREAD * spread + _FAR_OF_SIZE * np.abs(before).mean(axis=0)).all():
        return
    worst = int(np.argmax(difference))
    raise ComponentError(
        f"the exported model is not the trained one: to the same {len(before)} made-up rows it answers "
        f"{after[0, worst]:.4g}, ..., and the trained one {before[0, worst]:.4g}, ..., with the same weights",
        hint=f"{dotted_path} must make the same model in every process (no order of a set, no np.random, no "
        "hash of a text), and what the training changes must be a weight of a layer (self.add_weight), not "
        "an attribute or a variable outside of the model",
    )


def _made_up(feature: Feature, numbers: np.random.Generator) -> npt.NDArray[Any]:
    shape = (ROWS, *feature.shape)
    if feature.dtype == "float32":
        return numbers.normal(size=shape).astype(np.float32)
    highest = 256 if feature.dtype == "uint8" else min(feature.categories or 2, 2**31 - 1)
    return numbers.integers(highest, size=shape).astype(feature.model_dtype)
