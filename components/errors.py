"""The errors that components raise, and the base class that the pipeline's own errors share.

SlipwayError                what went wrong, in one line that needs no context, and how to fix it
├── ComponentError          raised while a node runs (exit code 1)
├── GateStopError           raised by a gate that refuses (exit code 3)
└── slipway.pipeline.errors.*       raised by the pipeline and the command line (see there)
"""

from collections.abc import Mapping
from typing import Any


class SlipwayError(Exception):
    """An error that a user can act on: shown as `error: message` and `hint: remedy`, without a traceback.

    Args:
        message: names the thing, its value and the rule it breaks, in one line.
        hint: the remedy, preferably a command to paste; empty if the message already says it.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class ComponentError(SlipwayError):
    """A node cannot work with the given data, code or settings.

    Args:
        start: the node to rerun from, if resuming at the failed node would fail the same way; empty: the node
            that raised the error.
    """

    def __init__(self, message: str, *, hint: str = "", start: str = "") -> None:
        super().__init__(message, hint=hint)
        self.start = start


class GateStopError(SlipwayError):
    """A gate refused the data or the model. Its node fails, and no node that depends on it runs.

    Args:
        message: what was found, in one line.
        verdict: the whole verdict as plain data for JSON. Its `lines` (a list) are shown below the message;
            `override` names what overrides the gate, `accept_data` or `bless`. The error carries the verdict
            because orchestrators remove what a failed node has written to its outputs.
    """

    def __init__(self, message: str, *, hint: str = "", verdict: Mapping[str, Any]) -> None:
        super().__init__(message, hint=hint)
        self.verdict = {"message": message, **verdict}
