"""Finds where a text file may be cut, between two of its rows: of each block it is read in, the beginning."""

from collections.abc import Callable, Iterator

import numpy as np

from slipway.components.ingest.blocks import FilePart, InputFile
from slipway.components.ingest.compression import Stream, is_utf8
from slipway.components.ingest.csv_record_blocks import Records, scan_records
from slipway.components.ingest.json_lines import line_of, scan_lines
from slipway.components.ingest.options import Options
from slipway.components.ingest.suffixes import SUFFIXES
from slipway.components.progress import report as tell


def csv_pieces(file: InputFile, options: Options) -> list[FilePart]:
    """Return a CSV file in pieces of whole records, which adjoin; none if it must be read as a whole.

    A file is read as a whole if it is compressed or not in UTF-8, or if its quotes are irregular: where a
    record ends then depends on all that comes before. With `split_by: {row: true}`, so is one in which a line
    is no row.

    Raises:
        FileError: the file cannot be read.
    """

    def rows(records: Records) -> int | None:
        return None if "row" in options.split_by and not _is_a_row_each(records) else len(records)

    first_row = 0 if options.column_names else -1  # the first record is the header
    return _pieces(file, options, _scanned, rows, first_row)


def json_pieces(file: InputFile, options: Options) -> list[FilePart]:
    """Return a file of JSON Lines in pieces of whole lines, which adjoin; none if it must be read as a whole.

    A file is read as a whole if it is compressed or not in UTF-8, or has a line about as long as the limit.

    Raises:
        FileError: the file cannot be read.
    """
    return _pieces(file, options, scan_lines, _filled_lines, 0)


def _pieces(
    file: InputFile,
    options: Options,
    scan: Callable[[InputFile, Options], Iterator[Records]],
    rows_of: Callable[[Records], int | None],
    row: int,
) -> list[FilePart]:
    """Return a piece for each block of records.

    Args:
        rows_of: returns how many rows are made of some records, good or bad; None if that is not known.
        row: the number of the first record's row.
    """
    is_compressed = any(file.name.lower().endswith(suffix) for suffix in SUFFIXES)
    if is_compressed or not is_utf8(options.encoding):
        return []
    total = file.path.stat().st_size
    pieces: list[FilePart] = []
    for records in scan(file, options):
        tell("finding where rows begin", done=records.offset, total=total)
        rows = rows_of(records) if _is_plain(records, options.limits.row_bytes) else None
        if rows is None:
            return []
        end = records.offset + len(records.data)
        pieces.append(FilePart(records.offset, end, records.line, max(row, 0)))
        row += rows
    return pieces


def _is_plain(records: Records, most_bytes: int) -> bool:
    """Return True if the records are the same wherever reading begins, between two of them."""
    if records.kept_bytes or not records.is_regular:
        return False
    # How a record that is too long is read depends on where a block ends. Two bytes are its line end.
    return not (records.ends - records.starts > most_bytes - 2).any()


def _is_a_row_each(records: Records) -> bool:
    """Return True if every line is a row, good or bad; of a bad row with several lines, each is one."""
    lines = len(records.newlines) + (not records.data.endswith(b"\n"))
    return len(records) == lines and b"\r\r" not in records.data


def _filled_lines(records: Records) -> int:
    """Return the number of lines of JSON Lines that are not blank; only those are rows."""
    # A blank line begins with whitespace, or with a byte order mark.
    first = np.frombuffer(records.data, dtype=np.uint8)[records.starts]
    unsure = np.flatnonzero((first <= ord(" ")) | (first > ord("}")))
    blank = sum(not line_of(records, int(records.starts[n]), int(records.ends[n])).strip() for n in unsure)
    return len(records) - blank


def _scanned(file: InputFile, options: Options) -> Iterator[Records]:
    stream = Stream(file, encoding=options.encoding)
    return scan_records(
        stream.read,
        delimiter=options.delimiter,
        quote=options.quote,
        max_record_bytes=options.limits.row_bytes,
        block_bytes=options.block_bytes,
    )
