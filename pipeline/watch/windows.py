"""Cuts logged requests into hours or days. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import numpy.typing as npt

By = Literal["hour", "day"]

LEAST_ROWS = 500
"""Minimum rows of a window; with fewer, chance alone moves distributions by as much as the gate's limits."""

_LENGTH_MS = {"hour": 3_600_000, "day": 86_400_000}


@dataclass(frozen=True)
class Window:
    """The requests of one or more consecutive hours or days.

    Attributes:
        begin_ms: the begin of the first hour or day, in milliseconds since 1970.
        last_ms: that of the last one; several are one window for lack of rows, and may be far apart.
        rows: the row numbers of the requests.
        by: the unit, hours or days.
    """

    begin_ms: int
    last_ms: int
    rows: npt.NDArray[np.int64]
    by: By

    @property
    def name(self) -> str:
        """The first hour or day in UTC: `2026-11-24` or `2026-11-24 07:00`."""
        return named(self.begin_ms, self.by)

    @property
    def last(self) -> str:
        """The last hour or day in the same form."""
        return named(self.last_ms, self.by)


def named(begin_ms: int, by: By) -> str:
    """Return an hour or a day in UTC: `2026-11-24 07:00` or `2026-11-24`."""
    begin = datetime.fromtimestamp(begin_ms / 1000, UTC)
    return begin.strftime("%Y-%m-%d %H:%M" if by == "hour" else "%Y-%m-%d")


def after(now_ms: int, by: By) -> int:
    """Return the begin of the hour or day after a time, in milliseconds since 1970."""
    return (now_ms // _LENGTH_MS[by] + 1) * _LENGTH_MS[by]


def windows(at_ms: npt.NDArray[np.int64], by: By) -> list[Window]:
    """Cut rows into windows, earliest first.

    A window of fewer than `LEAST_ROWS` rows is extended by the next hour or day; the last one is merged into
    the window before it.

    Args:
        at_ms: when each row was answered, in milliseconds since 1970, in any order; at least one.
        by: the unit of windows.
    """
    order = np.argsort(at_ms, kind="stable")
    numbers = at_ms[order] // _LENGTH_MS[by]
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    kept = [0]
    for start in starts[1:].tolist():
        if start - kept[-1] >= LEAST_ROWS:
            kept.append(start)
    if len(kept) > 1 and len(order) - kept[-1] < LEAST_ROWS:
        kept.pop()
    return [
        Window(
            int(numbers[start]) * _LENGTH_MS[by], int(numbers[end - 1]) * _LENGTH_MS[by], order[start:end], by
        )
        for start, end in zip(kept, [*kept[1:], len(order)], strict=True)
    ]
