"""Tells numbers from codes in columns of number-like texts, and describes how they are read. Pure."""

from collections.abc import Mapping

from slipway.components.counted_words import counted
from slipway.components.ingest.column_notes import ColumnNotes
from slipway.components.ingest.suspect_numbers import Form

# Telephone numbers with a country code have at least this many digits; signed changes such as +5 have fewer.
_LEAST_DIGITS = 7


def codes(notes: ColumnNotes) -> tuple[str, ...]:
    """Return the columns whose texts only look like numbers: telephone numbers, `12E4`, `01.02`.

    Args:
        notes: Ingest's notes about each column.
    """
    return tuple(column for column, kinds in notes.found.items() if _are_codes(kinds))


def words(notes: ColumnNotes) -> dict[str, str]:
    """Return, for each column that Ingest reads differently from how it is written, both forms as text."""
    return {
        column: f"{', '.join(_counted(what, *found) for what, found in kinds.items())}: "
        + ("text, to keep them as they are" if _are_codes(kinds) else "read as numbers")
        for column, kinds in notes.found.items()
    }


def _counted(what: str, count: int, first: str) -> str:
    return f"{counted(count, 'value')} {what} (as {first!r})"


def _are_codes(kinds: Mapping[str, tuple[int, str]]) -> bool:
    if Form.ZEROS in kinds or Form.EXPONENT in kinds:
        return True
    _, first = kinds.get(Form.PLUS, (0, ""))
    digits = first.strip().removeprefix("+")
    return digits.isdigit() and len(digits) >= _LEAST_DIGITS
