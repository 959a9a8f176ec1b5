"""Wide and deep, for tables: numbers and categories to a class or a number.

The wide part weights every category by itself; the deep part learns combinations of numbers and categories.
Source: Cheng et al., "Wide & Deep Learning for Recommender Systems", 2016.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from slipway.components.trainer.features import Feature
from slipway.components.trainer.models.head import finish


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters that `train.hyperparameters` may set.

    Attributes:
        classes: the number of classes of the label, >= 2; None: the label is a number.
        hidden_units: units of each layer of the deep part.
        dropout: share of each layer's outputs that a step drops, 0 .. 1.
        one_hot_limit: features with more categories are embedded instead.
        embedding_dimension: length of the vectors of such a feature, >= 1.
        learning_rate: of Adam.
    """

    classes: int | None = 2
    hidden_units: tuple[int, ...] = (64, 32)
    dropout: float = 0.2
    one_hot_limit: int = 128
    embedding_dimension: int = 16
    learning_rate: float = 1e-3


def build_model(features: Mapping[str, Feature], hyperparameters: Mapping[str, Any]) -> keras.Model:
    """Return the compiled model; see `head.finish` for its outputs.

    Categories enter as one-hot vectors or embeddings, which XLA compiles for any device, unlike Keras'
    CategoryEncoding and StringLookup.

    Args:
        features: the model's inputs by name; integers without a known number of categories count as numbers.
            Several categories per row are summed.
        hyperparameters: fields of `Hyperparameters`; missing ones keep their defaults.
    """
    settings = Hyperparameters(**hyperparameters)
    inputs, wide, deep = {}, [], []
    for name, feature in features.items():
        inputs[name] = keras.Input(feature.shape, dtype=feature.model_dtype, name=name)
        values = keras.layers.Flatten()(inputs[name]) if len(feature.shape) > 1 else inputs[name]
        if feature.categories is None:
            deep.append(keras.ops.cast(values, "float32"))
        elif feature.categories <= settings.one_hot_limit:
            counts = keras.ops.sum(keras.ops.one_hot(values, feature.categories), axis=1)
            wide.append(counts)
            deep.append(counts)
        else:
            wide.append(_embedding(values, feature.categories, 1))
            deep.append(_embedding(values, feature.categories, settings.embedding_dimension))
    hidden = _joined(deep)
    for units in settings.hidden_units:
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
        hidden = keras.layers.Dropout(settings.dropout)(hidden)
    return finish(
        inputs,
        _joined([hidden, *wide]),
        classes=settings.classes,
        learning_rate=settings.learning_rate,
    )


def _embedding(values: Any, categories: int, dimension: int) -> Any:
    vectors = keras.layers.Embedding(categories, dimension)(values)  # [rows, values per row, dimension]
    return keras.ops.sum(vectors, axis=1)


def _joined(parts: list[Any]) -> Any:
    return keras.layers.Concatenate()(parts) if len(parts) > 1 else parts[0]
