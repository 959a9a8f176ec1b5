"""The gate's findings: what, where, measured against which limit, and what to do about it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from slipway.components.escaped_text import escaped

Rule = Literal[
    "schema", "missing", "domain", "drift", "skew", "serving", "scale", "rows", "duplicates", "bad rows",
    "label", "freshness", "leak", "columns", "read otherwise",
]  # fmt: skip
# What three decimals show as 1.
_ALL = 0.9995
EditKind = Literal["add_values", "set_range", "set_presence", "set_mass", "add_feature", "deprecate"]


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the schema file that would accept the finding.

    Attributes:
        kind: what is done to the feature.
        values: `add_values`: the values that its domain gets.
        number: `set_presence` and `set_mass`: the new share; `set_range`: the bound that gives way.
        text: `set_range`: `min` or `max`; `add_feature`: INT, FLOAT or BYTES.
    """

    kind: EditKind
    feature: str
    values: tuple[str, ...] = ()
    number: float | None = None
    text: str = ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Edit":
        """Read it back from the JSON of `asdict`."""
        return cls(**{**data, "values": tuple(data["values"])})


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Which rows of the raw files show a finding; without any condition, all that hold a value.

    Attributes:
        column: the column that is looked at.
        values: rows that hold one of these texts.
        below: rows with a number less than this; None: none.
        above: rows with a number greater than this; None: none.
        within: rows with a number above the first and at most the second; None leaves a side open.
        is_missing: rows without a value.
        like: rows that hold what one of these does in each of its columns; numbers as float32, None for
            nothing.
        beside: another column, whose value is shown as well.
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
        file: its name, without the folder.
        line: from 1; None where the file has no lines.
        row: from 0, where it has none.
        value: what stands in the column, shortened; with another beside it, both with their names.
    """

    file: str
    line: int | None
    row: int
    value: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault in the data.

    Attributes:
        rule: which rule.
        feature: the column; empty where it is about the data as a whole.
        what: the finding in words, with its numbers, without feature, splits and limit.
        measured: the number that was held against the limit; None for what has none.
        limit: that limit.
        key: the workload's key that holds the limit; empty where the schema does.
        edits: the changes of the schema that would accept it.
        query: which rows show it.
        rows: up to five of those.
        rows_of: `all splits` where they were looked for in more than `splits`: the raw files do not say in
            which split a row is.
        rows_as: the subject of the earlier finding that has the same rows, where they are not told again.
        stops: False if it is only worth knowing.
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
        """Plain data; keys are the attributes' names, and `text` is the first line for people.

        The query is left out: it may hold whole rows, and those that it found are there.
        """
        return {**asdict(replace(self, query=None)), "text": self.headline}

    @property
    def headline(self) -> str:
        """Subject, finding, measured value and limit in one line."""
        limit = f"; limit {plain(self.limit)}" if self.limit is not None else ""
        return _one_line(f"{self.subject}: {self.what}{limit}" if self.subject else f"{self.what}{limit}")

    @property
    def subject(self) -> str:
        """The subject: feature and splits, one of them, or nothing."""
        where = ", ".join(self.splits)
        return f"{self.feature} ({where})" if self.feature and where else self.feature or where

    def lines(self) -> list[str]:
        """The finding as shown on the screen: headline, rows, remedy."""
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
    """Escape line breaks: a column's name may hold anything, even text that looks like a line of ours."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def plain(number: float) -> str:
    """Format a number as people write it: `0.05`, `10,000`."""
    return f"{number:,.0f}" if float(number).is_integer() and abs(number) < 1e15 else f"{number:.4g}"


def share(part: float, whole: float, of: str = "rows") -> str:
    """A share with both numbers: `21 of 15,002 rows (0.14%)`."""
    return f"{part:,.0f} of {whole:,.0f} {of} ({percent(part / whole if whole else 0.0)})"


def percent(part: float) -> str:
    """Format a share in percent, with enough decimals to distinguish it from zero."""
    if 0 < part < 0.0001:
        return "under 0.01%"
    return f"{part:.0%}" if part >= 0.1 and round(part * 100, 1) % 1 == 0 else f"{part:.2%}"


def raised(key: str, distance: float) -> str:
    """Say how to raise the limit of a distance from 0 to 1 so that this one passes."""
    if distance >= _ALL:
        return f"set {key} to 1, which lets any difference pass"
    return f"raise {key} above {distance:.3f}"


def quoted(values: Sequence[str], *, most: int = 5) -> str:
    """Quote the first few texts, with control characters escaped, and count the rest."""
    shown = ", ".join(f'"{_shortened(value)}"' for value in values[:most])
    return f"{shown} and {len(values) - most} more" if len(values) > most else shown


def _shortened(value: str, *, most: int = 60) -> str:
    safe = escaped(value)
    return safe if len(safe) <= most else f"{safe[:most]}..."


def _places(rows: Sequence[SampleRow]) -> str:
    """Return the places of the rows, with their values unless all are the same."""
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
