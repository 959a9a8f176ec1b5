"""SIGTERM, and a loss that has blown up: both end a training before its last step."""

import math
import signal
from types import FrameType
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.trainer.settings.blow_up import BlowUpSettings


class PreemptedError(BaseException):
    """The training was told to end, and has saved what it can. Like KeyboardInterrupt, nobody's to swallow.

    Args:
        step: steps that are complete and saved; 0 where there is no place to save to.
    """

    def __init__(self, step: int) -> None:
        super().__init__(f"told to end after step {step}")
        self.step = step


class Preemption:
    """Whether the process was told to end. While nothing is trained yet, it ends at once.

    Cloud machines that are taken back, Kubernetes and the local engine all send SIGTERM first. The process
    leaves with an exit code on which it is started again.
    """

    def __init__(self) -> None:
        self.is_requested = False
        self._is_training = False

    def listen(self) -> None:
        """Takes over SIGTERM."""
        signal.signal(signal.SIGTERM, self._request)

    def training_begins(self) -> None:
        """From now on the training looks at `is_requested` after each step, and saves first."""
        self._is_training = True

    def training_ended(self) -> None:
        """There is nothing left that a restart would have to do again but to write the result."""
        self._is_training = False

    def _request(self, _signum: int, _frame: FrameType | None) -> None:
        self.is_requested = True
        if not self._is_training:
            raise PreemptedError(0)


class BlownUpError(ComponentError):
    """The loss is not finite, or above `train.blow_up.loss_limit`."""


def require_loss(loss: Any, settings: BlowUpSettings, where: str) -> None:
    """Refuses a loss that has blown up; waits until it is computed.

    Args:
        loss: a number, or a tensor that may not be computed yet.
        settings: the limit.
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
