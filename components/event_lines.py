"""Events that a process prints for its parent between lines of user output: JSON, one event per line."""

import json
import sys
from typing import Any

_BEGIN = '{"event": '  # how json.dumps begins a mapping whose first key is "event"
_decoder = json.JSONDecoder()


def emit(event: str, **values: Any) -> None:
    """Print an event."""
    # A single write: other threads print, too.
    sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
    sys.stdout.flush()


def read_event(line: str) -> dict[str, Any] | None:
    """Return the event in a line of output, or None.

    Other code prints to the same stream, so text without a newline may come before the event or after it.
    """
    start = line.find(_BEGIN)
    while start >= 0:
        try:
            event, _ = _decoder.raw_decode(line, start)
        except ValueError:
            start = line.find(_BEGIN, start + 1)
        else:
            return dict(event)
    return None
