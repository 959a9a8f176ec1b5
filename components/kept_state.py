"""State that a node keeps from one attempt to the next; without an engine, none."""

import os
from pathlib import Path

# Set by the engine for each node's process, and inherited by its children.
STATE_VARIABLE = "SLIPWAY_STATE"

PREEMPTED_EXIT_CODE = 138
"""Exit code of a process that saved its state on SIGTERM: it should be started again.

Kubeflow's training operator restarts what ends with 128 and above, and leaves 138 to users; Vertex AI
restarts a worker on any code that is no common error.
"""


def state_folder() -> Path | None:
    """Return the node's own folder for state to resume from, e.g. checkpoints; created on demand.

    What is in it was left by earlier attempts of the same node at the same work, of this run or of another:
    same settings, code, data and results upstream. The engine removes it when the node completes. An attempt
    may be killed at any moment: only what was renamed into place is whole.

    Returns:
        An existing folder; None where nobody keeps one: the node starts at the beginning each time.
    """
    target = os.environ.get(STATE_VARIABLE)
    if not target:
        return None
    folder = Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
