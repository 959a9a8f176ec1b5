"""Reports a node's progress to the engine; without an engine, nothing is reported."""

import json
import os
from pathlib import Path

from slipway.components.atomic_file import whole_file

# Set by the engine for each node's process, and inherited by its children.
PROGRESS_VARIABLE = "SLIPWAY_PROGRESS"


def report(text: str, *, done: int | None = None, total: int | None = None) -> None:
    """Replace the line shown beside the running node.

    Args:
        text: a few words, e.g. `loss 0.31`.
        done: the amount done, in the unit of `total`, >= 0.
        total: the amount of work; None if unknown.
    """
    target = os.environ.get(PROGRESS_VARIABLE)
    if not target:
        return
    path = Path(target)
    # Replaced, never appended: a training of a million steps must not grow a file of a million lines.
    with whole_file(path) as partial:
        partial.write_text(json.dumps({"text": text, "done": done, "total": total}), encoding="utf-8")
