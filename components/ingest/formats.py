"""The formats that can be ingested, by name, with the modules that read them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from slipway.components.ingest.suffixes import in_store

# These modules import pyarrow, and a workload file is checked without it.
if TYPE_CHECKING:
    from slipway.components.ingest.blocks import Block, InputFile
    from slipway.components.ingest.column_types import Columns, ColumnType
    from slipway.components.ingest.options import Options


class Infer(Protocol):
    """Finds the columns of a file."""

    def __call__(self, file: "InputFile", options: "Options", known: "Columns") -> dict[str, "ColumnType"]:
        """Return the columns with their types; types in `known` need not be inferred."""


class Read(Protocol):
    """Reads the rows of a file."""

    def __call__(self, file: "InputFile", options: "Options", columns: "Columns") -> Iterator["Block"]:
        """Yield the rows, given the columns of all files."""


@dataclass(frozen=True)
class Format:
    """A format and the module that reads its files.

    Attributes:
        module: the module with `infer` and `read`; imported on first use, since some need further libraries.
        in_folder: patterns for the files in a folder; the first pattern that matches any file is used.
        has_columns: whether the files are tables with typed columns: keys such as `data.types` apply to them,
            and `new` and `predict` read them.
    """

    module: str
    suffixes: tuple[str, ...]
    in_folder: tuple[str, ...]
    has_columns: bool = False
    is_text: bool = False

    @property
    def in_store(self) -> str:
        """The pattern for the files in a folder of a store."""
        return self.in_folder[0] if "/" in self.in_folder[0] else in_store(self.in_folder[0])

    @property
    def infer(self) -> Infer:
        """The function that returns the columns of a file with their types."""
        function: Infer = import_module(self.module).infer
        return function

    @property
    def read(self) -> Read:
        """The function that yields the rows of a file, given the columns of all files."""
        function: Read = import_module(self.module).read
        return function


def _of(
    module: str, suffixes: tuple[str, ...], *in_folder: str, has_columns: bool = False, is_text: bool = False
) -> Format:
    return Format(f"slipway.components.ingest.{module}", suffixes, in_folder, has_columns, is_text)


FORMATS: Mapping[str, Format] = {
    "csv": _of("csv_table", (".csv",), "*.csv", "*.csv.*", has_columns=True, is_text=True),
    "jsonl": _of("json_lines", (".jsonl",), "*.jsonl", "*.jsonl.*", has_columns=True, is_text=True),
    "parquet": _of("parquet_table", (".parquet",), "*.parquet", has_columns=True),
    "tfrecord": _of("tfrecord_examples", (".tfrecord",), "*.tfrecord", "*.tfrecord*", "*"),
    "npz": _of("npz_images", (".npz",), "*.npz"),
    "images": _of("image_files", (".jpg", ".jpeg", ".png", ".gif", ".bmp"), "*/*"),
}

WITH_COLUMNS = tuple(name for name, each in FORMATS.items() if each.has_columns)
"""The formats whose files are tables with typed columns."""


def format_of(options: "Options") -> Format:
    """Return the format that the options name."""
    return FORMATS[options.format]
