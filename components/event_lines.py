"""Events that a process prints for its parent, among user output: JSON, one event per line."""

import json
import sys
from typing import Any

_BEGIN = '{"event": '  # as json.dumps writes a mapping whose first key that is
_decoder = json.JSONDecoder()


def emit(event: str, **values: Any) -> None:
    """Prints an event."""
    # In one piece: other threads print, too.
    sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
    sys.stdout.flush()


def read_event(line: str) -> dict[str, Any] | None:
    """The event in a line of output; None where there is none.

    Others print to the same stream, and may leave a line open before the event, or write into its end.
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
