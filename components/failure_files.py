"""Files that a failing node leaves in the run's folder for people to open; without an engine, none."""

import os
from pathlib import Path

# Set by the engine for each node's process.
LEFT_VARIABLE = "SLIPWAY_LEFT"


def left_folder() -> Path | None:
    """Return the node's own folder beside the run's logs; it is removed with the run.

    Only people read it: state for the next attempt belongs in `kept_state`.

    Returns:
        A folder that need not exist; None where nobody keeps one.
    """
    target = os.environ.get(LEFT_VARIABLE)
    return Path(target) if target else None
