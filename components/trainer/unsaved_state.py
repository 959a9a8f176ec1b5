"""State that layers keep in TensorFlow's variables: Keras neither trains it nor saves it with the weights.

A model that was written for Keras 2, where such variables were weights, or whose own train_step changes them,
would be exported with the values that it was built with.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature


class UnsavedState:
    """The variables of TensorFlow that a model's layers hold, and their values when this was made.

    Args:
        model: built; on another backend than TensorFlow it has no such variables.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        on_tensorflow = keras.backend.backend() == "tensorflow"
        self._before = [(name, each, _value(each)) for name, each in _held(model)] if on_tensorflow else []

    def require_unchanged(self, features: Mapping[str, Feature]) -> None:
        """Reject a model whose answers depend on such a variable that has changed since.

        Args:
            features: the model's inputs, by name.

        Raises:
            ComponentError: names the layer, its attribute and the remedy.
        """
        changed = {
            name: each for name, each, before in self._before if not np.array_equal(before, _value(each))
        }
        if not changed:
            return
        import tensorflow as tf

        rows = {name: tf.TensorSpec([None, *each.shape], each.model_dtype) for name, each in features.items()}
        answers = tf.function(lambda given: self._model(given, training=False))
        used = {id(each) for each in answers.get_concrete_function(rows).variables}
        if lost := [name for name, each in changed.items() if id(each) in used]:
            raise ComponentError(
                f"the training changed {', '.join(lost)}, a tf.Variable, which Keras does not save with the "
                "weights: the exported model would not be the trained one",
                hint="make it a weight: self.add_weight(shape=..., initializer=..., trainable=...)",
            )


def _held(model: Any) -> Iterator[tuple[str, Any]]:
    """Return TensorFlow's variables that are attributes of layers, or in lists or mappings that are.

    A name is that of the layer with that of its attribute.
    """
    import tensorflow as tf

    for layer in model._flatten_layers():
        for attribute, value in vars(layer).items():
            if attribute.startswith("_self_"):  # TensorFlow's own books
                continue
            inner = value.values() if isinstance(value, Mapping) else value
            for each in inner if isinstance(value, list | tuple | Mapping) else [value]:
                if isinstance(each, tf.Variable):
                    yield f"{layer.name}.{attribute}", each


def _value(variable: Any) -> Any:
    return np.asarray(variable)
