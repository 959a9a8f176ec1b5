"""Divides large files into parts, so that several processes read one file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from slipway.components.ingest.blocks import FilePart, InputFile
from slipway.components.ingest.options import MEBIBYTE, Options
from slipway.components.ingest.parquet_table import parquet_pieces
from slipway.components.ingest.storage import StoredFile, fetched
from slipway.components.ingest.text_pieces import csv_pieces, json_pieces
from slipway.components.store_address import is_elsewhere

PART_BYTES = 16 * MEBIBYTE
"""The least size of a part but the last, which a process converts in about half a second."""
MOST_PARTS = 64
"""Of a file; its parts are larger if there would be more."""


@dataclass(frozen=True, slots=True)
class _Cutter:
    """How files of a format are cut.

    Attributes:
        pieces: returns the smallest pieces that a file may be cut into, in order; each begins where the one
            before it ends. None if the file must be read as a whole.
        most_fold: how many times its size a file may take as it is read; a smaller one is not opened.
    """

    pieces: Callable[[InputFile, Options], Sequence[FilePart]]
    most_fold: int = 1


_CUTTERS: Mapping[str, _Cutter] = {
    "csv": _Cutter(csv_pieces),
    "jsonl": _Cutter(json_pieces),
    "parquet": _Cutter(parquet_pieces, most_fold=8),
}


def divided(files: Sequence[StoredFile], options: Options) -> list[StoredFile]:
    """Return the same files, large ones in parts; the same files give the same parts.

    Only files on disk are divided: an object would be downloaded once for each part.

    Raises:
        FileError: a file cannot be read.
    """
    cutter = _CUTTERS.get(options.format)
    if cutter is None:
        return list(files)
    return [part for file in files for part in _parts(file, cutter, options)]


def _parts(file: StoredFile, cutter: _Cutter, options: Options) -> list[StoredFile]:
    if is_elsewhere(file.name) or file.size_bytes * cutter.most_fold < 2 * PART_BYTES:
        return [file]
    with fetched(file) as opened:
        pieces = cutter.pieces(opened, options)
    total = pieces[-1].end if pieces else 0
    if total < 2 * PART_BYTES:
        return [file]
    parts = _joined(pieces, max(PART_BYTES, total // MOST_PARTS))
    return [replace(file, part=part) for part in parts] if len(parts) > 1 else [file]


def _joined(pieces: Sequence[FilePart], least_bytes: int) -> list[FilePart]:
    """Join pieces to parts of a size, or more; the last one may be smaller."""
    parts: list[FilePart] = []
    for piece in pieces:
        if parts and parts[-1].size_bytes < least_bytes:
            parts[-1] = parts[-1].joined(piece)
        else:
            parts.append(piece)
    return parts
