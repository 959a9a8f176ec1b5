"""Handles SIGTERM: when a machine is taken back, its training ends, to resume elsewhere.

`checkpoint_callback` saves and ends the training, `trainer/launch` starts it again.
"""

import signal
from types import FrameType


class PreemptedError(BaseException):
    """The training received SIGTERM and saved what it could. Like KeyboardInterrupt, not to be swallowed.

    Args:
        step: complete and saved steps; 0 if there is no place to save to.
    """

    def __init__(self, step: int) -> None:
        super().__init__(f"told to stop after step {step}")
        self.step = step


class Preemption:
    """Records whether the process received SIGTERM. While nothing is being trained, the process ends at once.

    Cloud machines that are taken back, Kubernetes and the local engine all send SIGTERM first. The process
    exits with a code on which it is restarted.
    """

    def __init__(self) -> None:
        self.is_requested = False
        self._is_training = False

    def listen(self) -> None:
        """Install the handler of SIGTERM."""
        signal.signal(signal.SIGTERM, self._request)

    def training_begins(self) -> None:
        """Mark the start: from now on the training checks `is_requested` after each step, and saves first."""
        self._is_training = True

    def training_ended(self) -> None:
        """Mark the end: from now on SIGTERM ends the process at once; a restart only writes the result."""
        self._is_training = False

    def _request(self, _signum: int, _frame: FrameType | None) -> None:
        self.is_requested = True
        if not self._is_training:
            raise PreemptedError(0)
