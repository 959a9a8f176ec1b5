"""Ids of runs: they sort by the time at which the runs began."""

import contextlib
import re
import secrets
from datetime import UTC, datetime, timedelta

# A run's id: its time, and a number in base 16 that tells apart those of one second.
_ID = re.compile(r"(\d{8}-\d{6})-([0-9a-f]{4})")
_TIME = "%Y%m%d-%H%M%S"
_LAST = 0xFFFF
# How far the numbers of two runs that follow each other within a second lie apart at most.
_STEP = 256


def new_run_id(*, after: str = "") -> str:
    """An id that sorts by time, to the second, and is unlikely to be used twice.

    Args:
        after: an id that sorts before it. Where that is of this second, or of a later one because the clock
            was set back, the new id has its time and a higher number, or the next second.
    """
    now, number = datetime.now(UTC).strftime(_TIME), secrets.randbelow(_LAST + 1)
    if (last := parts_of(after)) and now <= last[0].strftime(_TIME):
        higher = last[1] + 1 + secrets.randbelow(_STEP)
        begun, number = (last[0], higher) if higher <= _LAST else (last[0] + timedelta(seconds=1), number)
        now = begun.strftime(_TIME)
    return f"{now}-{number:04x}"


def parts_of(run_id: str) -> tuple[datetime, int] | None:
    """The time and the number of an id; None, if `new_run_id` did not make it."""
    if found := _ID.fullmatch(run_id):
        with contextlib.suppress(ValueError):  # digits that are no time
            return datetime.strptime(found[1], _TIME).replace(tzinfo=UTC), int(found[2], 16)
    return None
