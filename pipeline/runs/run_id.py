"""Creates and parses run ids, which sort by the time at which the runs began."""

import contextlib
import re
import secrets
import time
from datetime import UTC, datetime, timedelta

# A run's id: its time, and a hexadecimal number that distinguishes runs within one second.
_ID = re.compile(r"(\d{8}-\d{6})-([0-9a-f]{4})")
_TIME = "%Y%m%d-%H%M%S"
_LAST = 0xFFFF
# Largest difference between the numbers of two consecutive runs within one second.
_STEP = 256


def new_run_id(*, after: str = "") -> str:
    """Return an id that sorts by time, to the second, and is unlikely to be used twice.

    Args:
        after: an id that must sort before the new one. If its second is the current one, or a later one
            because the clock was set back, the new id has that time and a higher number, or the next
            second.
    """
    now, number = datetime.now(UTC).strftime(_TIME), secrets.randbelow(_LAST + 1)
    if (last := parts_of(after)) and now <= last[0].strftime(_TIME):
        higher = last[1] + 1 + secrets.randbelow(_STEP)
        begun, number = (last[0], higher) if higher <= _LAST else (last[0] + timedelta(seconds=1), number)
        now = begun.strftime(_TIME)
    return f"{now}-{number:04x}"


def begin_of_id(at_s: float) -> str:
    """Return the text that an id begins with of a run that begins then; it sorts before all of these.

    Args:
        at_s: seconds since 1970.
    """
    return time.strftime(_TIME, time.gmtime(at_s))


def parts_of(run_id: str) -> tuple[datetime, int] | None:
    """Return the time and the number of an id; None if `new_run_id` did not create it."""
    if found := _ID.fullmatch(run_id):
        with contextlib.suppress(ValueError):  # the digits are not a valid time
            return datetime.strptime(found[1], _TIME).replace(tzinfo=UTC), int(found[2], 16)
    return None
