"""Notes on columns whose values are read differently than written, one note per column."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from slipway.components.counted_words import counted
from slipway.components.ingest.float32_fit import WHOLE_UP_TO
from slipway.components.typed_json import typed

TO_ZERO = "closer to 0 than a 32-bit fraction can hold"
ROUNDED = f"beyond {WHOLE_UP_TO:,}"
_ENDINGS = {
    TO_ZERO: "read as 0",
    ROUNDED: "rounded to 32-bit fractions, so different values may become equal",
}
_SHOWN_LETTERS = 30

PlainNotes = dict[str, dict[str, list[int | str]]]
"""`ColumnNotes.found` in JSON types."""


@dataclass(slots=True)
class ColumnNotes:
    """Counts of odd values by column and kind, each with the first such value.

    Attributes:
        found: column -> a `Form`, TO_ZERO or ROUNDED -> (count, the first value as written).
    """

    found: dict[str, dict[str, tuple[int, str]]] = field(default_factory=dict)

    def add(self, column: str, what: str, count: int, first: str) -> None:
        """Add further values of a column."""
        kinds = self.found.setdefault(column, {})
        before, shown = kinds.get(what, (0, first[:_SHOWN_LETTERS]))
        kinds[what] = (before + count, shown)

    def merge(self, other: "ColumnNotes") -> None:
        """Add the notes of later rows or other files."""
        for column, kinds in other.found.items():
            for what, (count, first) in kinds.items():
                self.add(column, what, count, first)

    def to_json(self) -> PlainNotes:
        """Return the notes in JSON types; `from_json` reads them back."""
        return {
            column: {str(what): list(kinds[what]) for what in kinds} for column, kinds in self.found.items()
        }

    @classmethod
    def from_json(cls, data: PlainNotes) -> "ColumnNotes":
        """Restore notes from what `to_json` returned."""
        return cls(typed(dict[str, dict[str, tuple[int, str]]], data))

    def sentences(self) -> dict[str, str]:
        """Return a note for each column, with the setting that keeps its values as written."""
        return {column: f"{_said(kinds)}; {_kept(column)}" for column, kinds in self.found.items()}


def _said(kinds: Mapping[str, tuple[int, str]]) -> str:
    forms = [
        f"{counted(count, 'value')} {what} (as {first!r})"
        for what, (count, first) in kinds.items()
        if what not in _ENDINGS
    ]
    words = [f"{', '.join(forms)}, read as numbers"] if forms else []
    for what, ending in _ENDINGS.items():
        if what in kinds:
            count, first = kinds[what]
            noun = "whole number" if what == ROUNDED else "value"
            words.append(f"{counted(count, noun)} {what} (as {first!r}), {ending}")
    return "; ".join(words)


def _kept(column: str) -> str:
    name = column if column.isidentifier() else json.dumps(column, ensure_ascii=False)
    return f"to keep them as they are written, set data.types: {{{name}: text}}"
