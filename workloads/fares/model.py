"""The fares model: a shared trunk over the features of a trip, and a head for each of the two outputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from slipway.components.trainer.features import Feature


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters that `train.hyperparameters` of workload.yaml may set."""

    learning_rate: float = 2e-3
    hidden_units: tuple[int, ...] = (64, 32)
    dropout: float = 0.1


def build_model(features: Mapping[str, Feature], hyperparameters: Mapping[str, Any]) -> keras.Model:
    """Return the compiled model with the outputs `cost`, a number, and `tip`, a probability: [rows, 1] each.

    Args:
        features: the model's inputs by name, one number or one category per row.
        hyperparameters: fields of `Hyperparameters`; missing fields have their defaults.
    """
    settings = Hyperparameters(**hyperparameters)
    inputs, parts = {}, []
    for name, feature in features.items():
        inputs[name] = keras.Input(feature.shape, dtype=feature.model_dtype, name=name)
        if feature.categories is None:
            parts.append(inputs[name])
        else:
            parts.append(keras.ops.one_hot(keras.ops.squeeze(inputs[name], axis=-1), feature.categories))
    trunk = keras.layers.Concatenate()(parts)
    for units in settings.hidden_units:
        trunk = keras.layers.Dense(units, activation="relu")(trunk)
        trunk = keras.layers.Dropout(settings.dropout)(trunk)
    outputs = {
        "cost": keras.layers.Dense(1, dtype="float32", name="cost")(trunk),
        "tip": keras.layers.Dense(1, activation="sigmoid", dtype="float32", name="tip")(trunk),
    }
    model = keras.Model(inputs, outputs)
    model.compile(
        optimizer=keras.optimizers.Adam(settings.learning_rate),
        loss={"cost": "mean_squared_error", "tip": "binary_crossentropy"},
        loss_weights={"cost": 2.0, "tip": 1.0},
        weighted_metrics={
            "cost": [keras.metrics.MeanAbsoluteError(name="mae")],
            "tip": [keras.metrics.AUC(name="auc")],
        },
    )
    return model
