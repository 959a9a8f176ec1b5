"""The digits model: one wide dense layer, as in many introductory MNIST tutorials."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from slipway.components.trainer.features import Feature

CLASSES = 10
WHITE_TO_BLACK = 255.0


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters that `train.hyperparameters` of workload.yaml may set."""

    learning_rate: float = 1e-3
    units: int = 512
    dropout: float = 0.2


def build_model(features: Mapping[str, Feature], hyperparameters: Mapping[str, Any]) -> keras.Model:
    """Return the compiled model, whose output is the probability of each digit, float32 [rows, 10].

    Args:
        features: the model's inputs by name: only `image`.
        hyperparameters: fields of `Hyperparameters`; missing fields have their defaults.
    """
    settings = Hyperparameters(**hyperparameters)
    image = keras.Input(features["image"].shape, dtype=features["image"].model_dtype, name="image")
    hidden = keras.layers.Flatten()(keras.layers.Rescaling(1 / WHITE_TO_BLACK)(image))
    hidden = keras.layers.Dense(settings.units, activation="relu")(hidden)
    hidden = keras.layers.Dropout(settings.dropout)(hidden)
    output = keras.layers.Dense(CLASSES, activation="softmax", dtype="float32", name="digit")(hidden)
    model = keras.Model({"image": image}, output)
    model.compile(
        optimizer=keras.optimizers.Adam(settings.learning_rate),
        loss="sparse_categorical_crossentropy",
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
    )
    return model
