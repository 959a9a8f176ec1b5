"""Divides large CSV files into parts of whole records, so that several processes read one file."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from slipway.components.ingest.blocks import FilePart, InputFile
from slipway.components.ingest.compression import Stream, is_utf8
from slipway.components.ingest.csv_record_blocks import Records, scan_records
from slipway.components.ingest.options import MEBIBYTE, Options
from slipway.components.ingest.storage import StoredFile, fetched
from slipway.components.ingest.suffixes import SUFFIXES
from slipway.components.progress import report as tell
from slipway.components.store_address import is_elsewhere

PART_BYTES = 16 * MEBIBYTE
"""The least size of a part but the last, which a process converts in about half a second."""
MOST_PARTS = 64
"""Of a file; its parts are larger if there would be more."""


def divided(files: Sequence[StoredFile], options: Options) -> list[StoredFile]:
    """Return the same files, large ones in parts; the same files give the same parts.

    Only uncompressed files on disk, in UTF-8, are divided. A file whose quotes are irregular stays whole:
    where its records end then depends on all that comes before.

    Raises:
        FileError: a file cannot be read.
    """
    if options.format != "csv" or not is_utf8(options.encoding):
        return list(files)
    return [part for file in files for part in _parts(file, options)]


def _parts(file: StoredFile, options: Options) -> list[StoredFile]:
    is_compressed = any(file.name.lower().endswith(suffix) for suffix in SUFFIXES)
    if file.size_bytes < 2 * PART_BYTES or is_compressed or is_elsewhere(file.name):
        return [file]
    part_bytes = max(PART_BYTES, file.size_bytes // MOST_PARTS)
    parts = [FilePart(0, file.size_bytes)]
    rows = 0 if options.column_names else -1  # the first record is the header
    with fetched(file) as opened:
        for records in _scanned(opened, options):
            tell("finding where rows begin", done=records.offset, total=file.size_bytes)
            if not _is_plain(records, options.limits.row_bytes) or (
                "row" in options.split_by and not _is_a_row_each(records)
            ):
                return [file]
            if records.offset - parts[-1].begin >= part_bytes:
                parts[-1] = replace(parts[-1], end=records.offset)
                parts.append(FilePart(records.offset, file.size_bytes, records.line, rows))
            rows += len(records)
    return [replace(file, part=part) for part in parts]


def _is_plain(records: Records, most_bytes: int) -> bool:
    """Return True if the records are the same wherever reading begins, between two of them."""
    if records.kept_bytes or not records.is_regular:
        return False
    # What is made of a record that is too long depends on where a block ends. Two bytes for its line end.
    return not (records.ends - records.starts > most_bytes - 2).any()


def _is_a_row_each(records: Records) -> bool:
    """Return True if every line is a row, good or bad; of a bad row with several lines, each is one."""
    lines = len(records.newlines) + (not records.data.endswith(b"\n"))
    return len(records) == lines and b"\r\r" not in records.data


def _scanned(file: InputFile, options: Options) -> Iterator[Records]:
    stream = Stream(file, encoding=options.encoding)
    return scan_records(
        stream.read,
        delimiter=options.delimiter,
        quote=options.quote,
        max_record_bytes=options.limits.row_bytes,
        block_bytes=options.block_bytes,
    )
