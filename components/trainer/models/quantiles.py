"""Quantiles of a number as a model's prediction: the loss that they minimise, and outputs that cannot cross.

answers = rising(keras.layers.Dense(3)(hidden))                 # [rows, 3], each at least the one before
model.compile("adam", loss=PinballLoss([0.1, 0.5, 0.9]))        # evaluate.quantiles names the same
"""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from slipway.components.errors import ComponentError


@keras.saving.register_keras_serializable(package="slipway")
class PinballLoss(keras.losses.Loss):  # type: ignore[misc]
    """The mean pinball loss of answers [rows, quantiles] for a label [rows, 1]; works on every backend.

    Source: R. Koenker, G. Bassett, Regression quantiles, Econometrica 46 (1978).

    Args:
        quantiles: rising, above 0 and below 1; one for each answer.

    Raises:
        ComponentError: the quantiles are not so.
    """

    def __init__(self, quantiles: Sequence[float], name: str = "pinball_loss", **settings: Any) -> None:
        super().__init__(name=name, **settings)
        self.quantiles = [float(level) for level in quantiles]
        inside = all(0 < level < 1 for level in self.quantiles)
        if not self.quantiles or not inside or self.quantiles != sorted(set(self.quantiles)):
            raise ComponentError(
                f"quantiles {self.quantiles} must rise, above 0 and below 1", hint="as [0.1, 0.5, 0.9]"
            )

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the loss of each row."""
        if y_pred.shape[-1] != len(self.quantiles):
            raise ComponentError(
                f"the loss is for {len(self.quantiles)} quantiles, but the model returns {y_pred.shape[-1]}",
                hint=f"let its last layer be Dense({len(self.quantiles)})",
            )
        levels = ops.convert_to_tensor(self.quantiles, dtype=y_pred.dtype)
        missed = ops.cast(y_true, y_pred.dtype) - y_pred
        return ops.mean(ops.maximum(levels * missed, (levels - 1) * missed), axis=-1)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the loss, for Keras."""
        return {**super().get_config(), "quantiles": self.quantiles}


def rising(scores: Any) -> Any:
    """Return answers of which each is at least the one before.

    Args:
        scores: of a last layer, [rows, quantiles]: the first answer, and what each of the others adds, before
            its softplus.
    """
    steps = ops.concatenate([scores[:, :1], ops.softplus(scores[:, 1:])], axis=-1)
    return ops.cumsum(steps, axis=-1)
