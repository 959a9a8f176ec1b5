"""What the training process tells: one JSON object a line, read by `process.read_event`."""

import json
from typing import Any


def emit(event: str, **values: Any) -> None:
    """Prints one line of progress."""
    print(json.dumps({"event": event, **values}), flush=True)
