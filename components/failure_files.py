"""The folder where a failing node leaves files for people to open; without an engine there is none."""

import os
from pathlib import Path

# Set by the engine for each node's process.
LEFT_VARIABLE = "SLIPWAY_LEFT"


def left_folder() -> Path | None:
    """Return the node's own folder beside the run's logs; it is removed with the run.

    Only people read it: state for the next attempt belongs in `kept_state`.

    Returns:
        A folder, which may not exist yet; None if no engine runs the node.
    """
    target = os.environ.get(LEFT_VARIABLE)
    return Path(target) if target else None
