"""The head of every model here: last layer, loss and metrics, by what is predicted."""

from collections.abc import Collection
from typing import Any

import keras

from slipway.components.errors import ComponentError


def finish(inputs: Any, hidden: Any, *, classes: int | None, learning_rate: float) -> keras.Model:
    """Add the last layer, in float32 whatever the layers before it compute in, and compile with Adam.

    Args:
        inputs: the model's inputs, as `keras.Model` takes them.
        hidden: the last hidden tensor, [rows, units].
        classes: 2: returns the probability of class 1, [rows, 1]; more: the probability of each, [rows,
            classes]; None: a number, [rows, 1]. Labels are 0 .. classes - 1.
        learning_rate: of Adam, > 0.

    Raises:
        ComponentError: `classes` is neither None nor a whole number >= 2.
    """
    units = outputs_of(classes)
    name = free_name("output", inputs)
    scores = keras.layers.Dense(units, activation=_activation(classes), dtype="float32", name=name)
    model = keras.Model(inputs, scores(hidden))
    _compile(model, classes, keras.optimizers.Adam(learning_rate))
    return model


def finish_scores(inputs: Any, scores: Any, *, classes: int | None) -> keras.Model:
    """Turn scores [rows, `outputs_of(classes)`] into answers, for a model that no optimizer trains.

    Arguments and errors are those of `finish`.
    """
    name = free_name("output", inputs)
    answers = keras.layers.Activation(_activation(classes), dtype="float32", name=name)(scores)
    model = keras.Model(inputs, answers)
    _compile(model, classes, keras.optimizers.SGD())
    return model


def free_name(wanted: str, features: Collection[str]) -> str:
    """Return a name for a layer that no input has: the wanted one, with _ behind it if a feature has it."""
    while wanted in features:
        wanted += "_"
    return wanted


def outputs_of(classes: int | None) -> int:
    """Return how many numbers the answer to a row has.

    Raises:
        ComponentError: `classes` is neither None nor a whole number >= 2.
    """
    if classes is None:
        return 1
    if not isinstance(classes, int) or classes < 2:
        raise ComponentError(
            f"train.hyperparameters.classes ({classes!r}) must be a whole number >= 2",
            hint="leave it null to predict a number",
        )
    return 1 if classes == 2 else classes


def _activation(classes: int | None) -> str:
    return "linear" if classes is None else "sigmoid" if classes == 2 else "softmax"


def _compile(model: keras.Model, classes: int | None, optimizer: Any) -> None:
    if classes is None:
        loss, metrics = "mean_squared_error", [keras.metrics.MeanAbsoluteError(name="mae")]
    elif classes == 2:
        loss = "binary_crossentropy"
        metrics = [keras.metrics.AUC(name="auc"), keras.metrics.BinaryAccuracy(name="accuracy")]
    else:
        loss = "sparse_categorical_crossentropy"
        metrics = [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
    model.compile(optimizer=optimizer, loss=loss, metrics=metrics)
