"""Columns whose texts can be read as numbers: which are codes, and descriptions of the others. Pure."""

from collections.abc import Mapping

from slipway.components.counted_words import counted
from slipway.components.ingest.column_notes import ColumnNotes
from slipway.components.ingest.number_forms import Form

# No telephone number with its country is shorter; changes as +5 or +12.5 are.
_LEAST_DIGITS = 7


def codes(notes: ColumnNotes) -> tuple[str, ...]:
    """Text columns that only look like numbers: telephone numbers, `12E4`, `01.02`.

    Args:
        notes: what Ingest would say of each column.
    """
    return tuple(column for column, kinds in notes.found.items() if _are_codes(kinds))


def words(notes: ColumnNotes) -> dict[str, str]:
    """How each column is written that Ingest reads differently, and how it is read."""
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
