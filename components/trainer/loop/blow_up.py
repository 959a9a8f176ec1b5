"""A loss that has blown up ends the training before its last step."""

import math
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.trainer.settings.blow_up import BlowUpSettings


class BlownUpError(ComponentError):
    """The loss is not finite, or above `train.blow_up.loss_limit`."""


def require_loss(loss: Any, settings: BlowUpSettings, where: str) -> None:
    """Refuses a loss that has blown up; waits until it is computed.

    Args:
        loss: a number, or a tensor that may not be computed yet.
        where: after what, for the message.

    Raises:
        BlownUpError: it has blown up.
    """
    value = float(loss)
    if not math.isfinite(value):
        raise BlownUpError(
            f"the loss is {value} {where}",
            hint="lower the learning rate, or look for infinite or huge values in the features",
        )
    if settings.loss_limit is not None and value > settings.loss_limit:
        raise BlownUpError(
            f"the loss is {value:.4g} {where}, above train.blow_up.loss_limit ({settings.loss_limit:g})",
            hint="lower the learning rate, or raise the limit",
        )
