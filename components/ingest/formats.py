"""The formats that can be ingested, by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol

from components.ingest import csv_table, example_records, image_files, json_lines, npz_images, parquet_table
from components.ingest.blocks import Block, InputFile
from components.ingest.column_types import Columns, ColumnType
from components.ingest.options import Options


class Infer(Protocol):
    """Finds the columns of a file."""

    def __call__(self, file: InputFile, options: Options, known: Columns) -> dict[str, ColumnType]:
        """The columns with their types; types in `known` need not be looked for."""


class Read(Protocol):
    """Reads the rows of a file."""

    def __call__(self, file: InputFile, options: Options, columns: Columns) -> Iterator[Block]:
        """The rows, given the columns of all files."""


@dataclass(frozen=True)
class Format:
    """How files of a format are read.

    Attributes:
        infer: the columns of one file with their types; types in `known` need not be looked for.
        read: the rows of one file, given the columns of all.
        suffixes: of the files that a folder is searched for.
    """

    infer: Infer
    read: Read
    suffixes: tuple[str, ...]


def _of(module: ModuleType, *suffixes: str) -> Format:
    return Format(infer=module.infer, read=module.read, suffixes=suffixes)


FORMATS: Mapping[str, Format] = {
    "csv": _of(csv_table, ".csv"),
    "jsonl": _of(json_lines, ".jsonl"),
    "parquet": _of(parquet_table, ".parquet"),
    "tfrecord": _of(example_records, ".tfrecord"),
    "npz": _of(npz_images, ".npz"),
    "images": _of(image_files, ".jpg", ".jpeg", ".png", ".gif", ".bmp"),
}


def format_of(options: Options) -> Format:
    """The format that the options name."""
    return FORMATS[options.format]
