"""What the training process tells: one JSON object a line, read by `components.event_lines`."""

import json
import sys
from typing import Any


def emit(event: str, **values: Any) -> None:
    """Prints one line of progress."""
    # In one piece: other threads print, too.
    sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
    sys.stdout.flush()
