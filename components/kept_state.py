"""The state that a node keeps from one attempt to the next; without an engine there is none."""

import os
from pathlib import Path

# Set by the engine for each node's process, and inherited by its children.
STATE_VARIABLE = "SLIPWAY_STATE"

PREEMPTED_EXIT_CODE = 138
"""Exit code of a process that saved its state on SIGTERM and should be started again.

Kubeflow's training operator restarts processes whose exit code is 128 or above, and reserves 138 for users;
Vertex AI restarts a worker on any code that is not a common error.
"""


def state_folder() -> Path | None:
    """Return the node's own folder for state to resume from, e.g. checkpoints, and create it if needed.

    Its content was left by earlier attempts of the same node at the same work, in this run or another one:
    the settings, code, data and upstream results are the same. The engine removes the folder when the node
    completes. An attempt may be killed at any moment: only files that were renamed into place are complete.

    Returns:
        An existing folder; None if no engine runs the node, which then always starts from the beginning.
    """
    target = os.environ.get(STATE_VARIABLE)
    if not target:
        return None
    folder = Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
