"""Passes an error of ours from a task's container to a rehearsal, in a file that holds the whole error.

A service reads the exit code and the last lines instead.
"""

import json
import os
from pathlib import Path

from slipway.components.errors import ComponentError, GateStopError, SlipwayError

FAILURE_VARIABLE = "SLIPWAY_FAILURE"
"""The environment variable that names the file, in a container that a rehearsal started."""


def write_failure_file(error: SlipwayError) -> None:
    """Write an error into the file that the rehearsal named; do nothing elsewhere."""
    if file := os.environ.get(FAILURE_VARIABLE):
        verdict = error.verdict if isinstance(error, GateStopError) else None
        start = error.start if isinstance(error, ComponentError) else ""
        left = {"message": error.message, "hint": error.hint, "start": start, "verdict": verdict}
        Path(file).write_text(json.dumps(left), encoding="utf-8")


def read_failure_file(file: Path) -> GateStopError | ComponentError | None:
    """Return the error that a container left; None if it left none.

    Args:
        file: need not exist.
    """
    try:
        left = json.loads(file.read_text(encoding="utf-8"))
        if left["verdict"] is not None:
            return GateStopError(left["message"], hint=left["hint"], verdict=left["verdict"])
        return ComponentError(left["message"], hint=left["hint"], start=left["start"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        return ComponentError(f"the container left an error that cannot be read: {error}")
