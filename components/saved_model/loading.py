"""Loads a SavedModel and calls its signatures. A SavedModel is a program: verify it first."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.framework_errors import sentence
from slipway.components.saved_model.quiet_tensorflow import import_tensorflow, stderr_to_nowhere
from slipway.components.saved_model.reading import read_signatures
from slipway.components.saved_model.refused_examples import in_words
from slipway.components.saved_model.signatures import Signature

Array = npt.NDArray[Any]


class WrongInputError(ComponentError):
    """The model does not accept these values; the message names the column, or is the model's own."""


class LoadedModel:
    """A model that can be called, also from several threads.

    Args:
        folder: of a verified SavedModel: loading and calling it runs the code in it.

    Raises:
        ComponentError: the model cannot be loaded.
    """

    def __init__(self, folder: Path) -> None:
        tf = self._tensorflow = import_tensorflow()
        self.signatures: Mapping[str, Signature] = read_signatures(folder)
        try:
            # Keep the whole model: its functions stop working when it is garbage-collected.
            with stderr_to_nowhere():  # the first load looks for GPUs
                self._model = tf.saved_model.load(str(folder))
        except Exception as error:  # TensorFlow lets any exception of its parts through
            raise ComponentError(
                f"{folder} cannot be loaded: {type(error).__name__}: {sentence(_text(error))}",
                hint="push the model again",
            ) from error

    def call(self, signature: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return the model's predictions for a batch.

        Args:
            signature: one of `signatures`.
            inputs: an array for each of its inputs, of its type (bytes objects for `string`) and shape.

        Raises:
            WrongInputError: the model refuses the values.
        """
        tf = self._tensorflow
        types = self.signatures[signature].inputs
        try:
            tensors = {
                name: tf.constant(array, dtype=tf.as_dtype(types[name].dtype))
                for name, array in inputs.items()
            }
            function = self._model.signatures[signature]
            parameters = function.structured_input_signature[1]
            traced = {name: types[name].traced for name in tensors}
            outputs = function(
                **{
                    traced[name] if traced[name] in parameters else name: tensor
                    for name, tensor in tensors.items()
                }
            )
        except (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError, ValueError, TypeError) as error:
            raise WrongInputError(in_words(sentence(_text(error)))) from error
        return {name: np.asarray(tensor) for name, tensor in outputs.items()}


def _text(error: Exception) -> str:
    """Return TensorFlow's message; if it quotes invalid UTF-8, Python raises UnicodeDecodeError instead."""
    if isinstance(error, UnicodeDecodeError):
        return error.object.decode(errors="backslashreplace")
    return str(error)
