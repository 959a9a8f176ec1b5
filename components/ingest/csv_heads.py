"""Checks the head of each CSV file, so that a missing label is reported before any node starts."""

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

from slipway.components.counted_words import counted
from slipway.components.ingest.file_kinds import HEAD_BYTES as KIND_BYTES
from slipway.components.ingest.file_kinds import other_kind
from slipway.components.ingest.header_names import header_of, names_problem, with_index
from slipway.components.ingest.options import Options
from slipway.components.ingest.source import SourceError, shown
from slipway.components.ingest.suffixes import SUFFIXES
from slipway.components.nearest import nearest

HEAD_BYTES = 256 * 1024  # far longer than any header; Ingest itself checks the rows
_FIRST_ROWS = 100
_UTF8_BOM = codecs.BOM_UTF8
_SEPARATORS = (";", "\t", "|", ",", " ")


def check_heads(files: Sequence[Path], *, label: str | None, options: Options) -> tuple[str, ...]:
    """Check the files of a source before a run, as far as possible; compressed files are not checked.

    Args:
        label: a column that must exist; None: no column is required.

    Returns:
        The column names; empty if they are known only during the run.

    Raises:
        SourceError: names the file, what was expected and what was found.
    """
    if options.format != "csv":
        return ()
    if options.column_names:
        if label is not None and label not in options.column_names:
            raise SourceError(f"data.column_names has no {label!r}, which data.label names")
        return tuple(options.column_names)
    plain = [file for file in files if file.suffix.lower() not in SUFFIXES]
    if plain and codecs.lookup(options.encoding).name == "utf-8":
        return check_csv(
            plain,
            label=label,
            delimiter=options.delimiter,
            quote=options.quote,
            max_bad_share=options.max_bad_share,
        )
    return ()


def check_csv(
    files: Sequence[Path],
    *,
    label: str | None,
    delimiter: str = ",",
    quote: str | None = '"',
    max_bad_share: float = 0.0,
) -> tuple[str, ...]:
    """Check the head of every file, and return the column names.

    Each file must be UTF-8 text with a header and, among its first rows, at least one of the same length;
    names must be unique and the same in all files, and `label` must be among them. Other rows are left to
    Ingest, which quarantines them, unless so many are not text that it would stop.

    Args:
        files: uncompressed CSV files.
        label: a column that must exist; None: no column is required.
        quote: the character around fields; None if quotes have no meaning.
        max_bad_share: share of the rows that may be unreadable, 0 to 1.

    Raises:
        SourceError: names the file, what was expected and what was found.
    """
    heads = [_head(file) for file in files]
    no_text = [head for head in heads if head.problem is not None]
    if sum(head.bad_lines for head in heads) > max_bad_share * sum(head.all_lines for head in heads):
        raise next(head.problem for head in no_text if head.problem is not None)
    first, *others = files
    dialect = (delimiter, quote)
    columns = _checked_header(first, heads[0], dialect)
    if label is not None and label not in columns:
        raise _no_label(first, columns, label)
    for file, head in zip(others, heads[1:], strict=True):
        if (header := _checked_header(file, head, dialect)) != columns:
            raise _other_header(file, header, first, columns)
    return columns


@dataclass(frozen=True, slots=True)
class _Head:
    """The beginning of a file.

    Attributes:
        text: its lines that are text.
        is_whole: whether that is the whole file.
        bad_lines: the number of its lines that are not text.
        all_lines: about how many lines the whole file has.
        problem: the error for the first line that is not text.
    """

    text: str
    is_whole: bool
    bad_lines: int = 0
    all_lines: int = 0
    problem: SourceError | None = None


def _checked_header(file: Path, head: _Head, dialect: tuple[str, str | None]) -> tuple[str, ...]:
    # The head may end inside a line, which would look shorter than it is.
    text = head.text if head.is_whole else head.text[: head.text.rfind("\n") + 1]
    limit = csv.field_size_limit(HEAD_BYTES)  # of a field, for all readers: half as much by default
    try:
        rows = _rows(text, dialect)
        header = next((with_index(row) for row in rows if row), None)
        first_rows = [row for row in islice(rows, _FIRST_ROWS) if row]
        if header is not None and first_rows:
            header = header_of(header, first_rows).names
            if not any(_fits(row, header) for row in first_rows[:1]):
                # One broken row, whose quotes may open a field that all lines after it seem to be part of.
                lines = text.split("\n", _FIRST_ROWS)[1:_FIRST_ROWS]
                alone = [row for line in lines for row in _rows(line, dialect)]
                first_rows = [row for row in alone if row and _fits(row, header)] or first_rows
    finally:
        csv.field_size_limit(limit)
    if header is None or not first_rows:
        what = "has a header but no rows" if header else "has no header"
        if not head.is_whole:
            what = f"has no header and first row within {HEAD_BYTES} bytes"
        raise SourceError(
            f"{shown(file)} {what}", hint="a CSV needs a line of column names, and rows below it"
        )
    if problem := names_problem(header):
        raise SourceError(f"{shown(file)}: {problem[0]}", hint=problem[1])
    if not _fits(first_rows[0], header):
        hint = "quote values that contain the delimiter; see data.delimiter"
        if len(header) == 1:
            hint = "the column names must be the first line: remove what is above it"
        raise SourceError(
            f"{shown(file)}: the first row has {counted(len(first_rows[0]), 'value')}, "
            f"the header {counted(len(header), 'name')}",
            hint=hint,
        )
    return header


def _rows(text: str, dialect: tuple[str, str | None]) -> Iterator[list[str]]:
    delimiter, quote = dialect
    return csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quotechar=quote,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
    )


def _fits(row: Sequence[str], header: Sequence[str]) -> bool:
    """Return True if a row has a value for each column, and none beyond."""
    return len(row) >= len(header) and not any(row[len(header) :])


def _head(file: Path) -> _Head:
    """Return the first HEAD_BYTES of the file.

    Raises:
        SourceError: the file cannot be read, is empty or of another kind, or its first line is not text.
    """
    try:
        with file.open("rb") as stream:
            size_bytes = file.stat().st_size
            head = stream.read(HEAD_BYTES + 1)
    except FileNotFoundError as error:
        raise SourceError(f"{shown(file)} does not exist") from error
    except OSError as error:
        raise SourceError(f"{shown(file)} cannot be read: {error.strerror}") from error
    if not head.strip():
        raise SourceError(
            f"{shown(file)} is empty", hint="a CSV needs a line of column names, and rows below it"
        )
    if other := other_kind(head[:KIND_BYTES]):
        raise SourceError(f"{shown(file)} is {other[0]}", hint=other[1])
    head = head.removeprefix(_UTF8_BOM)
    is_whole = len(head) <= HEAD_BYTES
    all_lines = max(head.count(b"\n"), 1) * size_bytes // max(len(head), 1)
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head, final=is_whole)
    except UnicodeDecodeError:
        text = None
    if text is not None and "\0" not in text:
        return _Head(text, is_whole, all_lines=all_lines)
    lines = head.split(b"\n")
    if not is_whole:
        lines = lines[:-1] or lines  # the last one is cut
    problems = [_no_text(file, line, number) for number, line in enumerate(lines, 1)]
    bad = [problem for problem in problems if problem is not None]
    if problems[0] is not None:
        raise problems[0]
    good = [line for line, problem in zip(lines, problems, strict=True) if problem is None]
    return _Head(b"\n".join(good).decode(), is_whole, len(bad), all_lines, bad[0])


def _no_text(file: Path, line: bytes, number: int) -> SourceError | None:
    """Return the error for a line that is not text; None if it is."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return SourceError(
            f"{shown(file)} is not UTF-8 text (line {number})",
            hint="set data.encoding, for example cp1252 or utf-16; compressed files must be named .gz, .bz2 "
            "or .zst",
        )
    if "\0" in text:
        return SourceError(
            f"{shown(file)} is not text", hint="set data.format, or data.encoding if it is utf-16"
        )
    return None


def other_separator(columns: Sequence[str]) -> str | None:
    """Return what seems to separate the columns of a header that was read as one; None for other headers."""
    return next((each for each in _SEPARATORS if len(columns) == 1 and each in columns[0]), None)


def _no_label(file: Path, columns: tuple[str, ...], label: str) -> SourceError:
    close = nearest(label, columns)
    if separator := other_separator(columns):
        hint = f"the header seems to be separated by {separator!r}; set data.delimiter"
    elif close:
        hint = f"set data.label to {close!r}"
    else:
        hint = f"there are {', '.join(map(shown, columns[:20]))}{', ...' if len(columns) > 20 else ''}"
    or_near = f"; nearest: {close!r}" if close else ""
    return SourceError(f"{shown(file)} has no column {label!r}, which data.label names{or_near}", hint=hint)


def _other_header(file: Path, header: tuple[str, ...], first: Path, columns: tuple[str, ...]) -> SourceError:
    index, (found, expected) = next(
        (i, pair) for i, pair in enumerate(zip_longest(header, columns)) if pair[0] != pair[1]
    )
    has = "no further column" if found is None else repr(found)
    other = "no further column" if expected is None else repr(expected)
    return SourceError(
        f"{shown(file)} has a different header from {shown(first)}: column {index + 1} is {has}, not {other}",
        hint="all files of a source need the same columns in the same order",
    )
