"""Tells when a training has blown up: its loss is no number any more, or above the limit."""

import math
import time
from typing import Any

from components.errors import ComponentError
from components.trainer.settings.blow_up import BlowUpSettings

LOOK_INTERVAL_S = 0.5


class BlownUpError(ComponentError):
    """The loss is not finite, or above `train.blow_up.loss_limit`."""


class LossGuard:
    """Looks at the loss now and then; reading that of the current step would make the device wait.

    Args:
        settings: the limit.
    """

    def __init__(self, settings: BlowUpSettings) -> None:
        self._limit = math.inf if settings.loss_limit is None else settings.loss_limit
        self._previous: Any = None
        self._looked_at = time.monotonic()

    def after_step(self, loss: Any, where: str) -> None:
        """Looks at the loss of the call before, at most twice a second.

        Args:
            loss: mean of the epoch so far, a tensor that may not be computed yet.
            where: what the step is, for the message.

        Raises:
            BlownUpError: it has blown up.
        """
        now = time.monotonic()
        if self._previous is not None and now - self._looked_at >= LOOK_INTERVAL_S:
            self._looked_at = now
            self.check(self._previous, where)
        self._previous = loss

    def check(self, loss: Any, where: str) -> None:
        """Looks at a loss; waits until it is computed.

        Raises:
            BlownUpError: it has blown up.
        """
        value = float(loss)
        if not math.isfinite(value):
            raise BlownUpError(
                f"the loss is {value} {where}",
                hint="lower the learning rate, or look for infinite or huge values in the features",
            )
        if value > self._limit:
            raise BlownUpError(
                f"the loss is {value:.4g} {where}, above train.blow_up.loss_limit ({self._limit:g})",
                hint="lower the learning rate, or raise the limit",
            )
