"""The gate's findings: the fault, its place, the measured value, its limit and the remedy. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Literal

from slipway.components.counted_words import first_of
from slipway.components.escaped_text import escaped

# In the order in which findings are listed: causes before their consequences.
Rule = Literal[
    "bad rows", "rows", "read otherwise", "duplicates", "columns", "label", "schema", "missing", "domain",
    "scale", "leak", "drift", "skew", "serving", "freshness",
]  # fmt: skip
# The least distance that three decimals show as 1.
_ALL = 0.9995
EditKind = Literal["add_values", "set_range", "set_presence", "set_mass", "add_feature", "deprecate"]


@dataclass(frozen=True, slots=True)
class Edit:
    """A change to the schema file that would accept the finding.

    Attributes:
        values: for `add_values`, the values to add to the domain.
        number: for `set_presence` and `set_mass`, the new share; for `set_range`, the new bound.
        text: for `set_range`, `min` or `max`; for `add_feature`, INT, FLOAT or BYTES.
    """

    kind: EditKind
    feature: str
    values: tuple[str, ...] = ()
    number: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class RowQuery:
    """A query for the rows of the raw files that show a finding.

    A query without any condition matches every row that holds a value.

    Attributes:
        values: match rows that hold one of these texts.
        below: match rows with a number less than this; None for no such condition.
        above: match rows with a number greater than this; None for no such condition.
        within: match rows with a number above the first and at most the second; None leaves a side open.
        is_missing: match rows without a value.
        like: match rows that equal one of these in each of its columns; numbers are compared as float32, and
            None stands for no value.
        beside: another column whose value is shown as well.
    """

    column: str
    values: tuple[str, ...] = ()
    below: float | None = None
    above: float | None = None
    within: tuple[float | None, float | None] | None = None
    is_missing: bool = False
    like: tuple[Mapping[str, float | str | None], ...] = ()
    beside: str = ""


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A row of a raw file that shows a finding.

    Attributes:
        file: the name of the file, without the folder.
        line: the line number, from 1; None if the file has no lines.
        row: the row number, from 0, for files without lines.
        value: the value in the column, shortened; if the query has `beside`, both values with their names.
    """

    file: str
    line: int | None
    row: int
    value: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault in the data.

    Attributes:
        feature: the column; empty if the finding is about the data as a whole.
        what: the finding in words, with its numbers, without feature, splits and limit.
        measured: the number that was compared with the limit; None if there is no such number.
        key: the key of the workload file that sets the limit; empty if the schema sets it.
        edits: the changes to the schema that would accept the finding.
        rows: up to five of the matching rows.
        rows_of: `all splits` if the rows come from more than `splits`: the raw files do not record which
            split a row belongs to.
        rows_as: the subject of an earlier finding with the same rows, which are then not listed again.
        stops: whether the finding stops the run; False if it is only a note.
        is_final: whether the run cannot continue even with an override.
    """

    rule: Rule
    feature: str
    splits: tuple[str, ...]
    what: str
    measured: float | None = None
    limit: float | None = None
    key: str = ""
    remedy: str = ""
    edits: tuple[Edit, ...] = ()
    query: RowQuery | None = None
    rows: tuple[SampleRow, ...] = field(default=())
    rows_of: str = ""
    rows_as: str = ""
    stops: bool = True
    is_final: bool = False

    def to_json(self) -> dict[str, object]:
        """Return plain data: the attributes by name, and the headline as `text`.

        The query is left out: it may hold whole rows, and the rows that it found are included.
        """
        return {**asdict(replace(self, query=None)), "text": self.headline}

    @property
    def headline(self) -> str:
        """The subject, the finding in words and the limit, in one line."""
        limit = f"; limit {plain(self.limit)}" if self.limit is not None else ""
        return _one_line(f"{self.subject}: {self.what}{limit}" if self.subject else f"{self.what}{limit}")

    @property
    def subject(self) -> str:
        """The feature and the splits, or either, or an empty text."""
        where = ", ".join(self.splits)
        return f"{self.feature} ({where})" if self.feature and where else self.feature or where

    def lines(self) -> list[str]:
        """Return the finding as shown on the screen: headline, rows, remedy."""
        found = [self.headline]
        rows = f"rows of {self.rows_of}" if self.rows_of else "rows"
        if self.rows:
            found.append(f"  {rows}: {_places(self.rows)}")
        elif self.rows_as:
            found.append(f"  {rows}: those of {self.rows_as}, above")
        if self.remedy:
            found.append(f"  {_one_line(self.remedy)}")
        return found


def _one_line(text: str) -> str:
    """Escape line breaks: a column's name may hold any text, even one that looks like our own output."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def plain(number: float) -> str:
    """Format a number as people write it: `0.05`, `10,000`."""
    return f"{number:,.0f}" if float(number).is_integer() and abs(number) < 1e15 else f"{number:.4g}"


def share(part: float, whole: float, of: str = "rows") -> str:
    """Format a share together with both numbers: `21 of 15,002 rows (0.14%)`."""
    return f"{part:,.0f} of {whole:,.0f} {of} ({percent(part / whole if whole else 0.0)})"


def percent(part: float) -> str:
    """Format a share in percent, with enough decimals to distinguish it from zero."""
    if 0 < part < 0.0001:
        return "under 0.01%"
    return f"{part:.0%}" if part >= 0.1 and round(part * 100, 1) % 1 == 0 else f"{part:.2%}"


def limit_words(value: float, *, decimals: int) -> str:
    """Format a share that a limit must exceed; with two digits where its decimals are about 0."""
    text = f"{value:.{decimals}f}"
    # Without an exponent, which YAML takes for text.
    return text if abs(float(text) - value) <= 0.1 * value else f"{Decimal(f'{value:.2g}'):f}"


def advice_to_raise(key: str, distance: float) -> str:
    """Return the advice to raise a limit so that a distance, from 0 to 1, passes."""
    if distance >= _ALL:
        return f"set {key} to 1, which lets any difference pass"
    return f"raise {key} above {limit_words(distance, decimals=3)}"


def quoted(values: Sequence[str], *, most: int = 5) -> str:
    """Quote the first few texts, with control characters escaped, and count the rest."""
    return first_of([f'"{_shortened(value)}"' for value in values], most)


def _shortened(value: str, *, most: int = 60) -> str:
    safe = escaped(value)
    return safe if len(safe) <= most else f"{safe[:most]}..."


def _places(rows: Sequence[SampleRow]) -> str:
    """Return the files and lines of the rows, with the rows' values unless all values are equal."""
    is_same = len({row.value for row in rows}) == 1
    parts = []
    for name in dict.fromkeys(row.file for row in rows):
        of_file = [row for row in rows if row.file == name]
        has_lines = all(row.line is not None for row in of_file)
        numbers = [f"{row.line if has_lines else row.row:,}" for row in of_file]
        if not is_same:
            numbers = [
                f"{number} ({_shortened(row.value)})" for number, row in zip(numbers, of_file, strict=True)
            ]
        parts.append(f"{name} {'line' if has_lines else 'row'} {', '.join(numbers)}")
    return "; ".join(parts)
