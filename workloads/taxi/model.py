"""The taxi model: wide and deep over the features of preprocessing.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from components.trainer.features import Feature


@dataclass(frozen=True)
class Hyperparameters:
    """What `train.hyperparameters` of workload.yaml may set."""

    learning_rate: float = 2e-3
    hidden_units: tuple[int, ...] = (64, 32)
    embedding_size: int = 4
    dropout: float = 0.2


def build_model(features: Mapping[str, Feature], hyperparameters: Mapping[str, Any]) -> keras.Model:
    """Returns the compiled model: the probability of a big tip, float32 [rows, 1].

    The wide part weighs every category by itself; the deep part sees embeddings of the categories next to
    the numbers. All layers have fixed shapes, so that XLA compiles them for any device.

    Args:
        features: the model's inputs by name, each one value a row.
        hyperparameters: fields of `Hyperparameters`; what is left out keeps its default.
    """
    settings = Hyperparameters(**hyperparameters)
    inputs = {
        name: keras.Input(
            feature.shape, dtype="float32" if feature.dtype == "float32" else "int32", name=name
        )
        for name, feature in features.items()
    }
    wide, deep = [], []
    for name, feature in features.items():
        if feature.categories is None:
            deep.append(inputs[name])
            continue
        weigh = keras.layers.Embedding(
            feature.categories, 1, embeddings_initializer="zeros", name=f"wide_{name}"
        )
        embed = keras.layers.Embedding(feature.categories, settings.embedding_size, name=f"deep_{name}")
        wide.append(keras.layers.Flatten()(weigh(inputs[name])))
        deep.append(keras.layers.Flatten()(embed(inputs[name])))
    hidden = keras.layers.Concatenate()(deep)
    for units in settings.hidden_units:
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
        hidden = keras.layers.Dropout(settings.dropout)(hidden)
    logits = keras.layers.Add()([keras.layers.Dense(1)(hidden), *wide])
    output = keras.layers.Activation("sigmoid", dtype="float32", name="big_tip")(logits)
    model = keras.Model(inputs, output)
    model.compile(
        optimizer=keras.optimizers.Adam(settings.learning_rate),
        loss="binary_crossentropy",
        metrics=[keras.metrics.AUC(name="auc"), keras.metrics.BinaryAccuracy(name="accuracy")],
    )
    return model
