"""Compares the exported model's answers with those of the trained one, to rows that are made up.

The export builds the model anew and loads the trained weights. What is not among these is then as
`build_model` makes it in another process: an attribute that a callback has set, a constant of `np.random`,
features put together in the order of a set.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature

Answers = list[list[list[float]]]
"""Of each output: [ROWS, numbers]."""

ROWS = 16
MOST_NUMBERS = 8
"""Of each output in a row."""
_FAR_OF_SPREAD, _FAR_OF_SIZE = 0.25, 0.1
"""A mean difference above these shares of an output's spread and size is no rounding, nor bfloat16's. A model
may take all made-up rows for nearly the same, so that they have no spread but that of the rounding."""
_NOTHING = 1e-6
"""float16 takes the probability of a rare class for 0, and no bfloat16 has one of 1e-9 exactly."""


def sample_answers(model: Any, features: Mapping[str, Feature], *, batch_size: int) -> Answers:
    """Return a model's answers to made-up rows, which are the same in every process.

    Weights that the model changes by itself when it is asked are changed: save them before.

    Args:
        model: built, with its weights.
        features: its inputs, by name.
        batch_size: most rows at once: there is memory for those that it was trained with.

    Returns:
        Of each output [ROWS, numbers]; [] if the model does not take these rows, an answer is not finite, or
        the model, asked again, answers otherwise, as one that draws random numbers does.
    """
    numbers = np.random.default_rng(1)
    rows = {name: _made_up(features[name], numbers) for name in sorted(features)}
    ask = _in_a_graph(model)
    try:
        answers, again = _answers(ask, rows, batch_size), _answers(ask, rows, batch_size)
    except Exception:  # the user's code may refuse such rows in any way
        return []
    is_steady = all(
        np.isfinite(one).all() and np.allclose(one, other, rtol=1e-3)
        for one, other in zip(answers, again, strict=True)
    )
    return [each.tolist() for each in answers] if is_steady else []


def _in_a_graph(model: Any) -> Any:
    """Return the model as TensorFlow's graph: called by itself, an LSTM takes milliseconds for each step."""
    import keras

    if keras.backend.backend() != "tensorflow":
        return model
    import tensorflow as tf

    return tf.function(model)


def _answers(
    ask: Any, rows: Mapping[str, npt.NDArray[Any]], batch_size: int
) -> list[npt.NDArray[np.float64]]:
    import keras

    batches = []
    for first in range(0, ROWS, batch_size):
        some = {name: each[first : first + batch_size] for name, each in rows.items()}
        told = ask(some, training=False)
        outputs = [told[name] for name in sorted(told)] if isinstance(told, Mapping) else [told]
        arrays = [np.asarray(keras.ops.convert_to_numpy(each), np.float64) for each in outputs]
        batches.append([each.reshape(len(each), -1)[:, :MOST_NUMBERS] for each in arrays])
    return [np.concatenate(parts) for parts in zip(*batches, strict=True)]


def require_same_answers(trained: Answers, exported: Answers, dotted_path: str) -> None:
    """Reject an exported model that is not the trained one.

    Args:
        trained: as `sample_answers` returns them in the training process; [] if unknown.
        exported: those of the model that is exported.
        dotted_path: of the user's `build_model`.

    Raises:
        ComponentError: the answers differ by more than the rounding of another device or precision.
    """
    if [np.shape(each) for each in trained] != [np.shape(each) for each in exported]:
        return
    for before, after in zip(map(np.asarray, trained), map(np.asarray, exported), strict=True):
        difference = np.abs(after - before).mean(axis=0)
        # Of all numbers of an output together: that of a rare class may have no digit that is right.
        spread = np.maximum(before.std(axis=0), after.std(axis=0)).mean()
        if difference.mean() <= _FAR_OF_SPREAD * spread + _FAR_OF_SIZE * np.abs(before).mean() + _NOTHING:
            continue
        worst = int(np.argmax(difference))
        raise ComponentError(
            f"the exported model is not the trained one: to the same {len(before)} made-up rows it answers "
            f"{after[0, worst]:.4g}, ..., and the trained one {before[0, worst]:.4g}, ..., with the same "
            "weights",
            hint=f"{dotted_path} must make the same model in every process (no order of a set, no np.random, "
            "no hash of a text), and what the training changes must be a weight of a layer "
            "(self.add_weight), not an attribute or a variable outside of the model",
        )


def _made_up(feature: Feature, numbers: np.random.Generator) -> npt.NDArray[Any]:
    shape = (ROWS, *feature.shape)
    if feature.dtype == "float32":
        return numbers.normal(size=shape).astype(np.float32)
    highest = 256 if feature.dtype == "uint8" else min(feature.categories or 2, 2**31 - 1)
    return numbers.integers(highest, size=shape).astype(feature.model_dtype)
