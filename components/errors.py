"""The errors that components raise, and the root that the pipeline's own errors share.

SlipwayError                what went wrong, in one line a stranger understands, and what to do about it
├── ComponentError          raised while a node runs (exit code 1)
└── pipeline.errors.*       raised by the pipeline and the command line (see there)
"""


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
    """A node cannot do its work with the data, the code or the settings that it was given."""
