"""Checks the head of each CSV file, so that a missing label is reported before any node starts."""

import codecs
import csv
import io
from collections.abc import Sequence
from itertools import chain, zip_longest
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
_UTF8_BOM = codecs.BOM_UTF8
_OTHER_SEPARATORS = (";", "\t", "|", " ")


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
        return check_csv(plain, label=label, delimiter=options.delimiter, quote=options.quote)
    return ()


def check_csv(
    files: Sequence[Path], *, label: str | None, delimiter: str = ",", quote: str | None = '"'
) -> tuple[str, ...]:
    """Check the head of every file, and return the column names.

    Each file must be UTF-8 text with a header and at least one row of the same length; names must be unique
    and the same in all files, and `label` must be among them.

    Args:
        files: uncompressed CSV files.
        label: a column that must exist; None: no column is required.
        quote: the character around fields; None if quotes have no meaning.

    Raises:
        SourceError: names the file, what was expected and what was found.
    """
    first, *others = files
    dialect = (delimiter, quote)
    columns = _checked_header(first, dialect)
    if label is not None and label not in columns:
        raise _no_label(first, columns, label)
    for file in others:
        if (header := _checked_header(file, dialect)) != columns:
            raise _other_header(file, header, first, columns)
    return columns


def _checked_header(file: Path, dialect: tuple[str, str | None]) -> tuple[str, ...]:
    text, is_whole = _head(file)
    # The head may end inside a line, which would look shorter than it is.
    text = text if is_whole else text[: text.rfind("\n") + 1]
    limit = csv.field_size_limit(HEAD_BYTES)  # of a field, for all readers: half as much by default
    try:
        delimiter, quote = dialect
        rows = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=delimiter,
            quotechar=quote,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        )
        header = next((with_index(row) for row in rows if row), None)
        first_row = next((row for row in rows if row), None)
        if header is not None and first_row is not None:
            header = header_of(header, chain([first_row], rows)).names
    finally:
        csv.field_size_limit(limit)
    if header is None or first_row is None:
        what = "has a header but no rows" if header else "has no header"
        if not is_whole:
            what = f"has no header and first row within {HEAD_BYTES} bytes"
        raise SourceError(
            f"{shown(file)} {what}", hint="a CSV needs a line of column names, and rows below it"
        )
    if problem := names_problem(header):
        raise SourceError(f"{shown(file)}: {problem[0]}", hint=problem[1])
    if len(first_row) < len(header) or any(first_row[len(header) :]):
        hint = "quote values that contain the delimiter; see data.delimiter"
        if len(header) == 1:
            hint = "the column names must be the first line: remove what is above it"
        raise SourceError(
            f"{shown(file)}: the first row has {counted(len(first_row), 'value')}, "
            f"the header {counted(len(header), 'name')}",
            hint=hint,
        )
    return header


def _head(file: Path) -> tuple[str, bool]:
    """Return the first HEAD_BYTES of the file as text, and whether that is the whole file."""
    try:
        with file.open("rb") as stream:
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
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head, final=is_whole)
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        raise SourceError(
            f"{shown(file)} is not UTF-8 text (line {line})",
            hint="set data.encoding, for example cp1252 or utf-16; compressed files must be named .gz, .bz2 "
            "or .zst",
        ) from error
    if "\0" in text:
        raise SourceError(
            f"{shown(file)} is not text", hint="set data.format, or data.encoding if it is utf-16"
        )
    return text, is_whole


def _no_label(file: Path, columns: tuple[str, ...], label: str) -> SourceError:
    close = nearest(label, columns)
    separator = next((each for each in _OTHER_SEPARATORS if len(columns) == 1 and each in columns[0]), None)
    if separator:
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
