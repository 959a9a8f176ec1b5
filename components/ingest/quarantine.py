"""Writes rows that do not parse to a quarantine, counts them, and decides when they stop the run.

The readers of the formats find rows that are broken, `typed_rows` cells that are not of their column's type.
"""

import base64
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, NotRequired, TypedDict

from slipway.components.counted_words import counted
from slipway.components.errors import ComponentError
from slipway.components.ingest.blocks import Reject
from slipway.components.ingest.column_notes import ColumnNotes, PlainNotes

RAW_BYTES = 64 * 1024  # the most to keep of a row; enough to see what is wrong with it
_SHOWN_BYTES = 60
_SHOWN_ROWS = 3


class BadRowsError(ComponentError):
    """The share of rows that did not parse is above the limit."""


class NoRowsError(ComponentError):
    """The files have no rows."""


class PlainTally(TypedDict):
    """A `Tally` in JSON types; `rejected` holds the rejected rows by reason."""

    rows_in: int
    rows_out: dict[str, int]
    rejected: dict[str, int]
    first_rejected: list[str]
    unlabelled: int
    read_otherwise: PlainNotes
    has_index: bool
    has_empty_end: bool


class RejectedRow(TypedDict):
    """A rejected row as it is stored in the quarantine.

    Attributes:
        column: the column whose value is wrong, if any.
        reason, detail: as in `Reject`.
        raw: the row, at most RAW_BYTES of it, if it is text.
        raw_base64: the same for a row that is not text.
        raw_bytes: the row's size, if it is above RAW_BYTES.
    """

    file: str
    line: int | None
    offset: int
    column: str | None
    reason: str
    detail: str
    raw: NotRequired[str]
    raw_base64: NotRequired[str]
    raw_bytes: NotRequired[int]


@dataclass(slots=True)
class Tally:
    """Counts of the rows, by outcome.

    Attributes:
        rows_out: examples written, by split.
        reasons: rows rejected, by reason.
        first: descriptions of the first few rejected rows.
        unlabelled: rows left out because they have no label, as the workload requests.
        notes: values that are read differently than written.
        has_index: whether an unnamed first column was left out of the features, see `header_names.INDEX`.
        has_empty_end: whether rows end with a delimiter, see `header_names.EMPTY_END`.
    """

    rows_in: int = 0
    rows_out: dict[str, int] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    first: list[str] = field(default_factory=list)
    unlabelled: int = 0
    notes: ColumnNotes = field(default_factory=ColumnNotes)
    has_index: bool = False
    has_empty_end: bool = False

    @property
    def rejected(self) -> int:
        """The number of rows in quarantine."""
        return self.reasons.total()

    @property
    def bad_share(self) -> float:
        """The share of all rows that were rejected, 0 to 1."""
        return self.rejected / self.rows_in if self.rows_in else 0.0

    def add(self, other: "Tally") -> None:
        """Add the counts of other rows."""
        self.rows_in += other.rows_in
        self.reasons += other.reasons
        self.first = (self.first + other.first)[:_SHOWN_ROWS]
        self.unlabelled += other.unlabelled
        self.notes.merge(other.notes)
        self.has_index |= other.has_index
        self.has_empty_end |= other.has_empty_end
        for split, rows in other.rows_out.items():
            self.rows_out[split] = self.rows_out.get(split, 0) + rows

    def to_json(self) -> PlainTally:
        """Return the tally in JSON types; `from_json` reads it back."""
        return {
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "rejected": dict(sorted(self.reasons.items())),
            "first_rejected": self.first,
            "unlabelled": self.unlabelled,
            "read_otherwise": self.notes.to_json(),
            "has_index": self.has_index,
            "has_empty_end": self.has_empty_end,
        }

    @classmethod
    def from_json(cls, data: PlainTally) -> "Tally":
        """Restore a tally from what `to_json` returned."""
        return cls(
            rows_in=data["rows_in"],
            rows_out=dict(data["rows_out"]),
            reasons=Counter(data["rejected"]),
            first=list(data["first_rejected"]),
            unlabelled=data["unlabelled"],
            notes=ColumnNotes.from_json(data["read_otherwise"]),
            has_index=data["has_index"],
            has_empty_end=data["has_empty_end"],
        )


class QuarantineFile:
    """Writes rejected rows, one JSON object per line, and counts them.

    Args:
        file: a file open for writing; `close` closes it.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.reasons: Counter[str] = Counter()
        self.first: list[str] = []

    def add(self, name: str, rejects: Sequence[Reject]) -> None:
        """Add rejected rows of the file `name`."""
        for reject in rejects:
            self.reasons[reject.reason] += 1
            if len(self.first) < _SHOWN_ROWS:
                self.first.append(describe(name, reject))
            self._file.write(json.dumps(to_record(name, reject), ensure_ascii=False).encode() + b"\n")

    def close(self) -> None:
        """Write what is buffered, and close the file."""
        self._file.close()


def to_record(name: str, reject: Reject) -> RejectedRow:
    """Return the record of a rejected row for the quarantine."""
    raw = reject.place.raw
    record: RejectedRow = {
        "file": name,
        "line": reject.place.line,
        "offset": reject.place.offset,
        "column": reject.column,
        "reason": reject.reason,
        "detail": reject.detail,
    }
    if len(raw) > RAW_BYTES:
        record["raw_bytes"] = len(raw)
        raw = raw[:RAW_BYTES]
    try:
        record["raw"] = raw.decode()
    except UnicodeDecodeError:
        record["raw_base64"] = base64.b64encode(raw).decode()
    return record


def describe(name: str, reject: Reject) -> str:
    """Describe a rejected row in one line."""
    place = reject.place
    where = f"line {place.line}" if place.line is not None else f"at {place.offset}"
    column = f", column {reject.column}" if reject.column else ""
    detail = f" ({reject.detail})" if reject.detail else ""
    raw = place.raw[:_SHOWN_BYTES].decode(errors="backslashreplace")
    shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in raw)
    more = "..." if len(place.raw) > _SHOWN_BYTES else ""
    return f"{name} {where}{column}: {reject.reason}{detail}: {shown}{more}"


def _remedies(tally: Tally) -> Iterator[str]:
    yield "correct these rows"
    yield "check data.delimiter, data.encoding and, for words such as n/a, data.null_values"
    if "not a number" in tally.reasons:
        yield "for numbers with a unit or other separators, name their form in data.numbers"
    if "not a whole number" in tally.reasons:
        yield "if a column of whole numbers may hold fractions now, also 7.0, let it be FLOAT in the schema"
    if tally.bad_share < 1:
        yield "or raise data.max_bad_share"


def check_tally(tally: Tally, *, max_bad_share: float, file_format: str = "csv") -> None:
    """Check that no row was lost, that not too many rows are bad, and that there were rows at all.

    Args:
        max_bad_share: limit of `tally.bad_share`, 0 to 1.

    Raises:
        BadRowsError: too many rows are bad; names the counts by reason and the first bad rows.
        NoRowsError: the files have no rows, or none with a label where rows without are left out.
        ComponentError: the rows written, rejected and left out do not add up to the rows read.
    """
    out = sum(tally.rows_out.values())
    if tally.rows_in != out + tally.rejected + tally.unlabelled:
        raise ComponentError(
            f"{counted(tally.rows_in, 'row')} read, but {out:,} written, {tally.rejected:,} rejected and "
            f"{tally.unlabelled:,} left out",
            hint="this is a bug in slipway.components.ingest; please report it with the files",
        )
    if tally.bad_share > max_bad_share:
        counts = ", ".join(f"{count} {reason}" for reason, count in tally.reasons.most_common())
        raise BadRowsError(
            f"{tally.rejected:,} of {counted(tally.rows_in, 'row')} ({tally.bad_share:.2%}) could not be "
            f"read, more than data.max_bad_share ({max_bad_share:.2%}): {counts}; "
            f"first: {'; '.join(tally.first)}",
            hint="; ".join(_remedies(tally)),
        )
    if tally.unlabelled and not out:
        raise NoRowsError(
            f"none of {counted(tally.rows_in, 'row')} has a label, and data.unlabelled_rows is leave_out",
            hint="if the labels come late, run again once they are there; data.label names their column",
        )
    if not tally.rows_in:
        has_header = file_format == "csv"
        hint = "a table needs rows below its header" if has_header else "name files with rows in data.source"
        raise NoRowsError("it has no rows", hint=hint)
