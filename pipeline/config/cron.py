"""Checks cron expressions of five fields, as in crontab(5). Pure."""

import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
"""The names of the days of the week, which cron counts from 0."""
# Name, least and greatest value, and names of the values, starting with the least.
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, DAYS),
)
_PART = re.compile(r"^(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?$")


def cron_problem(expression: str) -> str:
    """Return the error in a cron expression, in words; empty if there is none.

    Args:
        expression: minute, hour, day of the month, month, day of the week.
    """
    fields = expression.split()
    if len(fields) != len(_FIELDS):
        return f"must be 5 fields, minute, hour, day of the month, month, day of the week, not {len(fields)}"
    for text, (name, least, greatest, names) in zip(fields, _FIELDS, strict=True):
        for part in text.split(","):
            match = _PART.match(part)
            if match is None:
                return f"{part!r} is not a valid {name}; write for example */5, 1-3 or 0,30"
            ends = [_value(end, least, names) for end in (match["first"], match["last"]) if end is not None]
            if any(end is None or not least <= end <= greatest for end in ends):
                return f"{part!r} is not a valid {name}: it is {least} to {greatest}"
            if len(ends) == 2 and ends[0] > ends[1]:  # type: ignore[operator]
                return f"{part!r} is not a valid {name}: the range runs backwards"
            if match["step"] is not None and int(match["step"]) == 0:
                return f"{part!r} is not a valid {name}: the step must be at least 1"
    return ""


def _value(text: str, least: int, names: tuple[str, ...]) -> int | None:
    if text.isdecimal():
        return int(text)
    return names.index(text.lower()) + least if text.lower() in names else None
