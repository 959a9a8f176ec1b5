"""The errors that components raise, and the root that the pipeline's own errors share.

SlipwayError                what went wrong, in one line a stranger understands, and what to do about it
├── ComponentError          raised while a node runs (exit code 1)
├── GateStopError           raised by a gate that says no (exit code 3)
└── pipeline.errors.*       raised by the pipeline and the command line (see there)
"""

from collections.abc import Mapping
from typing import Any


class SlipwayError(Exception):
    """An error that a user can act on: shown as `error: message` and `hint: remedy`, without a traceback.

    Args:
        message: names the thing, its value and the rule it breaks, in one line.
        hint: the remedy, best as a command to paste; empty when the message already says it.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class ComponentError(SlipwayError):
    """A node cannot do its work with the data, the code or the settings that it was given.

    Args:
        message: as for every error.
        hint: as for every error.
        start: the node to run again from, where going on would meet the same; empty: the one that raised it.
    """

    def __init__(self, message: str, *, hint: str = "", start: str = "") -> None:
        super().__init__(message, hint=hint)
        self.start = start


class GateStopError(SlipwayError):
    """A gate does not let pass what it was shown. Its node fails, and nothing that waits for it runs.

    Args:
        message: what was found, in one line.
        hint: as for every error.
        verdict: the whole verdict as plain data for JSON. Its `lines` (a list) are shown below the message;
            `override` names what lets it pass, `accept_data` or `bless`. It travels with the error, because
            orchestrators remove what a failed node has written to its outputs.
    """

    def __init__(self, message: str, *, hint: str = "", verdict: Mapping[str, Any]) -> None:
        super().__init__(message, hint=hint)
        self.verdict = {"message": message, **verdict}
