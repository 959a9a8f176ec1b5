"""SIGTERM: a machine that is taken back ends a training, which goes on elsewhere from what it has saved."""

import signal
from types import FrameType


class PreemptedError(BaseException):
    """The training was told to end, and has saved what it can. Like KeyboardInterrupt, nobody's to swallow.

    Args:
        step: steps that are complete and saved; 0 where there is no place to save to.
    """

    def __init__(self, step: int) -> None:
        super().__init__(f"told to stop after step {step}")
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
        """From now on a restart would only have to write the result."""
        self._is_training = False

    def _request(self, _signum: int, _frame: FrameType | None) -> None:
        self.is_requested = True
        if not self._is_training:
            raise PreemptedError(0)
