"""Detects the delimiter and the quote character of a CSV from its first lines. Pure."""

import csv
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from slipway.pipeline.errors import UsageError

_DELIMITERS = ",;\t|"
_MOST_LINES = 20
# The line below the names in a table of Markdown, psql or MySQL's client.
_RULER = re.compile(r"[|+]?\s*:?-{2}[-:|+\s]*")
_LIBSVM = re.compile(r"[-+.\d]+(?: \d+:[-+.\de]+)+ ?", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """The delimiter and the quote character of a CSV."""

    delimiter: str
    quote: str


def dialect_of(head: bytes, *, name: str) -> Dialect:
    """Detect the dialect of a CSV.

    The delimiter is the most frequent of the usual delimiters in the first line, outside of quotes. If it has
    none of these, the delimiter is a single space if all lines fit that, else a comma.

    Args:
        head: the file's first bytes; the first 20 lines are examined, and all lines for single quotes.

    Raises:
        UsageError: the columns are aligned with several spaces, each row begins with a number for which the
            header has no name, or the file is no CSV: a table drawn with lines, or libsvm's format.
    """
    # The last line of a longer head may be cut, and would then have too few fields.
    whole = head if head.count(b"\n") < 2 else head[: head.rfind(b"\n")]
    written = whole.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    every = [line.rstrip("\r") for line in written if line.strip()]
    lines = every[:_MOST_LINES]
    _refuse_other_formats(lines, name=name)
    first = lines[0] if lines else ""
    quote = "'" if _has_single_quotes(every) else '"'
    if delimiter := _usual_delimiter(first, quote):
        return Dialect(delimiter, quote)
    if _has_table(lines, " ", quote):
        return Dialect(" ", quote)
    spaced = [re.sub(" +", " ", line.strip()) for line in lines]
    if _has_table(spaced, " ", quote) or _has_unnamed_numbers(spaced, quote):
        reading = f"pd.read_csv({name!r}, sep=r'\\s+', quotechar={quote!r})"
        # The index is written too: it holds the column that has no name in the header.
        code = f"import pandas as pd; {reading}.to_csv('commas.csv')"
        raise UsageError(
            f"{name}: its columns are separated by several spaces.",
            hint=f"python -c {shlex.quote(code)}   # then name that file",
        )
    return Dialect(",", quote)


def _refuse_other_formats(lines: Sequence[str], *, name: str) -> None:
    if any(_RULER.fullmatch(line.strip()) and {"|", "+"} & set(line) for line in lines[:3]):
        raise UsageError(
            f"{name} is a table drawn with lines, not a CSV.",
            hint="export it as CSV: psql --csv, or mysql --batch, which separates by tabs; of a table in "
            "Markdown remove the line of dashes and the outer | of each line",
        )
    if lines and all(map(_LIBSVM.fullmatch, lines)):
        code = (
            "import pandas as pd, sklearn.datasets as d; "
            f"x, y = d.load_svmlight_file({name!r}); "
            "pd.DataFrame(x.toarray()).add_prefix('x').assign(y=y).to_csv('rows.csv', index=False)"
        )
        raise UsageError(
            f"{name} is in the format of libsvm, not a CSV.",
            hint=f"python -c {shlex.quote(code)}   # then name that file, with --label y",
        )


def _usual_delimiter(line: str, quote: str) -> str:
    """Return the most frequent delimiter outside of quotes; empty if there is none."""
    outside = "".join(line.split(quote)[::2])
    most = max(_DELIMITERS, key=outside.count)
    return most if most in outside else ""


def _has_single_quotes(lines: Sequence[str]) -> bool:
    """Whether fields are certainly enclosed in single quotes: an apostrophe may also be part of a text.

    No line may hold a double quote or an odd number of single quotes. In addition, either the rows have as
    many fields as the header only if single quotes count as quotes, or the whole header or a whole column
    must be enclosed in them.
    """
    if not lines or any('"' in line or line.count("'") % 2 for line in lines):
        return False
    delimiter = _usual_delimiter(lines[0], "'") or " "
    if not _has_table(lines, delimiter, "'"):
        return False
    around = re.compile(f"(?:^|{re.escape(delimiter)})'[^']*'(?:$|{re.escape(delimiter)})")
    if not any(around.search(line) for line in lines):
        return False
    if delimiter != (_usual_delimiter(lines[0], '"') or " ") or not _has_table(lines, delimiter, '"'):
        return True
    # No field holds the delimiter, so all rows split into as many fields as the header.
    header, *rows = [line.split(delimiter) for line in lines]
    return any(all(map(_is_quoted, fields)) for fields in (header, *zip(*rows, strict=True)))


def _is_quoted(field: str) -> bool:
    return len(field) > 1 and field[0] == field[-1] == "'"


def _has_unnamed_numbers(lines: Sequence[str], quote: str) -> bool:
    """Whether each row begins with a number or a quoted name for which the header has no name."""
    header, *rows = lines or [""]
    front = re.compile(f"[0-9]+ |{quote}")
    return " " in header and all(map(front.match, rows)) and _has_table(["row " + header, *rows], " ", quote)


def _has_table(lines: Sequence[str], delimiter: str, quote: str) -> bool:
    """Whether there are rows, and each has as many fields as the header, at least two."""
    try:
        rows = list(csv.reader(lines, delimiter=delimiter, quotechar=quote, strict=True))
    except csv.Error:
        return False
    lengths = {len(row) for row in rows}
    return len(rows) > 1 and len(lengths) == 1 and lengths.pop() > 1
