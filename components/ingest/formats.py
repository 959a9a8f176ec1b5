"""The formats that can be ingested, by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

# They bring pyarrow, and a workload file is checked without it.
if TYPE_CHECKING:
    from slipway.components.ingest.blocks import Block, InputFile
    from slipway.components.ingest.column_types import Columns, ColumnType
    from slipway.components.ingest.options import Options


class Infer(Protocol):
    """Finds the columns of a file."""

    def __call__(self, file: "InputFile", options: "Options", known: "Columns") -> dict[str, "ColumnType"]:
        """The columns with their types; types in `known` need not be looked for."""


class Read(Protocol):
    """Reads the rows of a file."""

    def __call__(self, file: "InputFile", options: "Options", columns: "Columns") -> Iterator["Block"]:
        """The rows, given the columns of all files."""


@dataclass(frozen=True)
class Format:
    """How files of a format are read.

    Attributes:
        module: has the functions; imported when it is first needed, for some bring libraries of their own.
        suffixes: of such files.
        in_folder: the files that a folder means: the first pattern that matches any.
    """

    module: str
    suffixes: tuple[str, ...]
    in_folder: tuple[str, ...]

    @property
    def infer(self) -> Infer:
        """The columns of one file with their types."""
        function: Infer = import_module(self.module).infer
        return function

    @property
    def read(self) -> Read:
        """The rows of one file, given the columns of all."""
        function: Read = import_module(self.module).read
        return function


def _of(module: str, suffixes: tuple[str, ...], *in_folder: str) -> Format:
    return Format(f"slipway.components.ingest.{module}", suffixes, in_folder)


FORMATS: Mapping[str, Format] = {
    "csv": _of("csv_table", (".csv",), "*.csv", "*.csv.*"),
    "jsonl": _of("json_lines", (".jsonl",), "*.jsonl", "*.jsonl.*"),
    "parquet": _of("parquet_table", (".parquet",), "*.parquet"),
    "tfrecord": _of("example_records", (".tfrecord",), "*.tfrecord", "*.tfrecord*", "*"),
    "npz": _of("npz_images", (".npz",), "*.npz"),
    "images": _of("image_files", (".jpg", ".jpeg", ".png", ".gif", ".bmp"), "*/*"),
}


def format_of(options: "Options") -> Format:
    """The format that the options name."""
    return FORMATS[options.format]
