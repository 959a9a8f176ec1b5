"""Ends a fit whose loss is NaN, infinite or too large; `fit` may then go back to a checkpoint."""

import math
from collections.abc import Mapping
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.trainer.settings.blow_up import BlowUpSettings


class BlownUpError(ComponentError):
    """The loss is not finite, or above `train.blow_up.loss_limit`."""


def require_loss(loss: Any, settings: BlowUpSettings, where: str) -> None:
    """Reject a loss that has blown up; waits until it is computed.

    Args:
        loss: a number, or a tensor that may not be computed yet.
        where: the place in the training, for the message.

    Raises:
        BlownUpError: the loss has blown up.
    """
    value = float(loss)
    if not math.isfinite(value):
        raise BlownUpError(
            f"the loss is {value} {where}",
            hint="lower the learning rate, or look for infinite or huge values in the features, and for "
            "integers at or above the input_dim of an Embedding",
        )
    if settings.loss_limit is not None and value > settings.loss_limit:
        raise BlownUpError(
            f"the loss is {value:.4g} {where}, above train.blow_up.loss_limit ({settings.loss_limit:g})",
            hint="lower the learning rate, or raise the limit",
        )


def require_losses(metrics: Mapping[str, float], settings: BlowUpSettings, where: str) -> None:
    """Reject the metrics of an epoch in which the training has blown up.

    Args:
        metrics: by name; if a custom train_step returns no `loss`, everything that it returns must be finite.
        settings: as for `require_loss`.
        where: as for `require_loss`.

    Raises:
        BlownUpError: a loss has blown up.
        ComponentError: a limit is set for a loss that does not exist.
    """
    if "loss" in metrics:
        require_loss(metrics["loss"], settings, where)
        return
    if settings.loss_limit is not None:
        raise ComponentError(
            f"train.blow_up.loss_limit is {settings.loss_limit:g}, but the model's train_step returns no "
            f"'loss'; there are {', '.join(metrics)}",
            hint="return the number to be watched as 'loss', or remove the limit",
        )
    for name, value in metrics.items():
        if not name.startswith("val_"):
            require_loss(value, settings, f"({name}) {where}")
