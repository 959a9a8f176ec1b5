"""What a node that fails leaves in the run's folder for people to open. Without an engine: nothing."""

import os
from pathlib import Path

# Set by the engine for each node's process.
LEFT_VARIABLE = "SLIPWAY_LEFT"


def left_folder() -> Path | None:
    """The node's own folder beside the run's logs; it goes when the run goes.

    Nothing reads it but people: what a further attempt can go on with belongs in `kept_state`.

    Returns:
        A folder that need not exist; None where nobody keeps one.
    """
    target = os.environ.get(LEFT_VARIABLE)
    return Path(target) if target else None
