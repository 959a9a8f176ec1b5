"""The taxi model: wide and deep over the features of preprocessing.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from slipway.components.trainer.features import Feature


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters that `train.hyperparameters` of workload.yaml may set."""

    learning_rate: float = 1e-3
    hidden_units: tuple[int, ...] = (64, 32)
    dropout: float = 0.3


def build_model(features: Mapping[str, Feature], hyperparameters: Mapping[str, Any]) -> keras.Model:
    """Return the compiled model, whose output is the probability of a big tip, float32 [rows, 1].

    The wide part weights each category separately; the deep part learns combinations of numbers and
    categories. Categories enter as one-hot vectors, which XLA compiles for any device.

    Args:
        features: the model's inputs by name, one number or one category per row.
        hyperparameters: fields of `Hyperparameters`; missing fields have their defaults.
    """
    settings = Hyperparameters(**hyperparameters)
    inputs, numbers, categories = {}, [], []
    for name, feature in features.items():
        if feature.categories is None:
            inputs[name] = keras.Input(feature.shape, dtype="float32", name=name)
            numbers.append(inputs[name])
        else:
            inputs[name] = keras.Input(feature.shape, dtype="int32", name=name)
            code = keras.ops.squeeze(inputs[name], axis=-1)
            categories.append(keras.ops.one_hot(code, feature.categories))
    deep = keras.layers.Concatenate()([*numbers, *categories])
    for units in settings.hidden_units:
        deep = keras.layers.Dense(units, activation="relu")(deep)
        deep = keras.layers.Dropout(settings.dropout)(deep)
    both = keras.layers.Concatenate()([deep, *categories])
    output = keras.layers.Dense(1, activation="sigmoid", dtype="float32", name="big_tip")(both)
    model = keras.Model(inputs, output)
    model.compile(
        optimizer=keras.optimizers.Adam(settings.learning_rate),
        loss="binary_crossentropy",
        metrics=[keras.metrics.AUC(name="auc"), keras.metrics.BinaryAccuracy(name="accuracy")],
    )
    return model
