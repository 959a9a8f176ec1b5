"""The end of every model here: last layer, loss and metrics, by what is predicted."""

from typing import Any

import keras

from components.errors import ComponentError


def finish(inputs: Any, hidden: Any, *, classes: int | None, learning_rate: float) -> keras.Model:
    """Adds the last layer, in float32 whatever the layers before it compute in, and compiles with Adam.

    Args:
        inputs: the model's inputs, as `keras.Model` takes them.
        hidden: the last hidden tensor, [rows, units].
        classes: 2: the probability of class 1, [rows, 1]; more: the probability of each, [rows, classes];
            None: a number, [rows, 1]. Labels are 0 .. classes - 1.
        learning_rate: of Adam, > 0.

    Raises:
        ComponentError: `classes` is neither None nor a whole number >= 2.
    """
    if classes is None:
        units, activation, loss = 1, None, "mean_squared_error"
        metrics: list[Any] = [keras.metrics.MeanAbsoluteError(name="mae")]
    elif not isinstance(classes, int) or classes < 2:
        raise ComponentError(
            f"train.hyperparameters.classes ({classes!r}) must be a whole number >= 2",
            hint="leave it null to predict a number",
        )
    elif classes == 2:
        units, activation, loss = 1, "sigmoid", "binary_crossentropy"
        metrics = [keras.metrics.AUC(name="auc"), keras.metrics.BinaryAccuracy(name="accuracy")]
    else:
        units, activation, loss = classes, "softmax", "sparse_categorical_crossentropy"
        metrics = [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
    output = keras.layers.Dense(units, activation=activation, dtype="float32", name="output")(hidden)
    model = keras.Model(inputs, output)
    model.compile(optimizer=keras.optimizers.Adam(learning_rate), loss=loss, metrics=metrics)
    return model
