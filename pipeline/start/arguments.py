"""Checks what `new` is told to do: the name, and the columns that its options name."""

import keyword
import re
from collections.abc import Collection, Mapping, Sequence

from slipway.components.counted_words import counted
from slipway.components.nearest import nearest
from slipway.pipeline.config.section import PATTERN_WORDS, Name, SnakeName
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.facts import Facts
from slipway.pipeline.start.reading import Table

# A number or a date, which hardly any column has for a name.
_VALUE = re.compile(
    r"[-+]?(\d++(\.\d++)?|\.\d++)([eE][-+]?\d+)?|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}([T ][0-9:.+-]*Z?)?"
)


def check_name(name: str) -> None:
    """Reject what cannot name a workload and its package.

    Raises:
        UsageError: the name has other characters, is too long, or is a keyword of Python.
    """
    for kind in (SnakeName, Name):  # of a package, and of a workload, which is shorter
        pattern = kind.__metadata__[0].metadata[0].pattern  # type: ignore[attr-defined]
        if not re.fullmatch(pattern, name):
            raise UsageError(
                f"{name!r} is not a valid workload name: {PATTERN_WORDS[pattern]}.",
                hint="for example: new churn",
            )
    if keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} is a Python keyword and cannot name a package.", hint=f"for example: new {name}_1"
        )


def refuse_columns_of_images(*, keep: Sequence[str], weight: str | None, null_values: Sequence[str]) -> None:
    """Reject options that name columns, or what is in them, where the data is images.

    Raises:
        UsageError: such an option is given.
    """
    options = {
        "--keep": [*keep],
        "--weight": [weight] if weight is not None else [],
        "--null-value": [*null_values],
    }
    for option, values in options.items():
        if values:
            raise UsageError(f"{option} {values[0]}: images have no columns.", hint=f"leave {option} out")


def check_columns(
    data: str,
    table: Table,
    facts: Mapping[str, Facts],
    *,
    label: str | None,
    weight: str | None,
    keep: Collection[str],
) -> None:
    """Reject columns that are not there, or cannot be what the options make of them.

    Raises:
        UsageError: there is such a column; the message says what it holds.
    """
    for wanted in [*keep, *(each for each in (label, weight) if each is not None)]:
        if wanted in table.unread:
            raise UsageError(
                f"{wanted} holds {table.unread[wanted]}: it can be neither label nor feature.",
                hint="write it as one text or number per row, and name that",
            )
        if wanted in table.lists and (wanted not in keep or wanted in (label, weight)):
            raise UsageError(
                f"{wanted} holds several values per row: it can be neither label nor weight.",
                hint="write it as one text or number per row, and name that",
            )
        if wanted not in facts:
            raise UsageError(
                f"{data} has no column {wanted!r}; there are: {', '.join(facts)}.",
                hint=_other_column(wanted, list(facts.values()), is_csv=table.file_format == "csv"),
            )
        if wanted in keep and facts[wanted].is_too_large:
            raise UsageError(
                f"--keep {wanted}: it runs from {facts[wanted].least:g} to {facts[wanted].greatest:g}, "
                "beyond what 32-bit numbers hold.",
                hint="empty these cells, or name them with --null-value",
            )


def check_weight(column: Facts, *, label: str, kept: Collection[str]) -> None:
    """Reject a column that cannot hold the weights of rows.

    Raises:
        UsageError: the column is the label or a feature, or not a number >= 0 in every row.
    """
    what = ""
    if column.name == label:
        what = "is the column to predict"
    elif column.name in kept:
        what = "is also a feature by --keep"
    elif column.kind == "text":
        what = "holds texts, but a weight is a number"
    elif column.missing:
        what = f"is empty in {counted(column.missing, 'row')}"
    elif column.least < 0 or column.is_too_large:
        wrong = column.least if column.least < 0 else column.greatest
        what = f"holds {wrong:g}, but weights must be finite and >= 0"
    elif column.greatest == 0:
        what = "is 0 in every row"
    if what:
        raise UsageError(
            f"--weight {column.name}: this column {what}.",
            hint="name a column with a number >= 0 in every row, or leave --weight out",
        )


def are_a_row(columns: Sequence[Facts]) -> bool:
    """Return whether the names are numbers, dates and texts that their own columns hold: there is no header.

    Of a column whose texts hardly recur, the name tells nothing.
    """
    texts = [column for column in columns if not _VALUE.fullmatch(column.name.strip())]
    recurring = [column for column in texts if column.kind != "text" or column.distinct <= column.present / 2]
    held, held_recurring = ([column.name in column.counts for column in each] for each in (texts, recurring))
    return not texts or (any(held) and all(held_recurring))


def _other_column(wanted: str, columns: Sequence[Facts], *, is_csv: bool) -> str:
    names = [column.name for column in columns]
    if is_csv and are_a_row(columns):
        return "the first line is read as column names; put a line with names above the rows"
    if len(names) == 1 and is_csv:
        return (
            "the first line must name the columns, separated by , ; | tabs or single spaces: remove what is "
            "above it, or write the file with one of these"
        )
    near = nearest(wanted, names)
    return f"the nearest is {near!r}" if near else "name one of these"
