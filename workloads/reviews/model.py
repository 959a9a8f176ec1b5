"""The reviews model: embeddings of words and pairs of words, pooled to one vector per text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from slipway.components.trainer.features import Feature
from slipway.components.trainer.models.head import finish


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters that `train.hyperparameters` of workload.yaml may set."""

    learning_rate: float = 1e-3
    dimension: int = 64
    dropout: float = 0.5


def build_model(features: Mapping[str, Feature], hyperparameters: Mapping[str, Any]) -> keras.Model:
    """Return the compiled model, whose output is the probability that a text is positive, [rows, 1].

    Args:
        features: the model's inputs by name: codes of a known number of categories; 0 is padding.
        hyperparameters: fields of `Hyperparameters`; missing fields have their defaults.
    """
    settings = Hyperparameters(**hyperparameters)
    inputs, pooled = {}, []
    for name, feature in features.items():
        codes = inputs[name] = keras.Input(feature.shape, dtype=feature.model_dtype, name=name)
        vectors = keras.layers.Embedding(feature.categories, settings.dimension)(codes)
        is_there = keras.ops.cast(keras.ops.expand_dims(codes > 0, -1), vectors.dtype)
        # GlobalAveragePooling1D divides by the number of words, which is 0 for an empty text.
        count = keras.ops.maximum(keras.ops.sum(is_there, axis=1), 1.0)
        pooled.append(keras.ops.sum(vectors * is_there, axis=1) / keras.ops.sqrt(count))
    text = keras.layers.Concatenate()(pooled) if len(pooled) > 1 else pooled[0]
    text = keras.layers.Dropout(settings.dropout)(text)
    return finish(inputs, text, classes=2, learning_rate=settings.learning_rate)
