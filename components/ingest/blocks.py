"""The output of the format readers: blocks of rows, and the rows that could not be read."""

from collections.abc import Callable, Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from slipway.components.errors import ComponentError
from slipway.components.ingest.source_limits import SourceLimits

# Reasons for rejects in more than one format.
BEYOND_64_BITS = "a whole number beyond 64 bits"
LIST_WITH_GAP = "a missing value inside a list"


class FileError(ComponentError):
    """A file cannot be ingested at all, or not beyond some point."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file that begins and ends between two rows.

    Attributes:
        begin: its first byte; of a Parquet file, what is unpacked before it, in bytes.
        end: the byte after its last one.
        line: the number of its first line, from 1.
        rows: how many rows of the file lie before it.
        groups: its row groups, in a Parquet file.
    """

    begin: int
    end: int
    line: int = 1
    rows: int = 0
    groups: range = range(0)

    @property
    def size_bytes(self) -> int:
        """Its size."""
        return self.end - self.begin

    def joined(self, following: "FilePart") -> "FilePart":
        """Return this part and the one that follows it as one."""
        groups = range(self.groups.start, following.groups.stop)
        return replace(self, end=following.end, groups=groups)


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of the source.

    Attributes:
        name: the file's name as the user knows it, used in messages, the quarantine and the digest.
        path: the path of its content on this machine.
        label: the class of its images, if the format takes the class from the folder.
        part: the part of it to read, if not all; see `file_parts`.
    """

    name: str
    path: Path
    label: str = ""
    part: FilePart | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a row in its file.

    Attributes:
        line: the line number in a text file, from 1; None in other files.
        offset: the byte offset in the uncompressed file if rows lie in it one after the other, else the
            row's number, from 0.
    """

    line: int | None
    offset: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that cannot become an example.

    Attributes:
        reason: one of a few short phrases, by which rejected rows are counted.
        column: the column whose value is wrong, if a single column is to blame.
    """

    reason: str
    place: Place
    column: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Rows that were read together.

    Attributes:
        rows: the number of rows in the columns (or records).
        columns: the values by column: unparsed strings if `is_text`, else int64, uint64, uint8, float64,
            decimals, large_binary, null or a large_list of these.
        records: serialised Examples, if the file holds those; the columns are then only those to split by.
        rejects: rows of the same part of the file that were rejected and are not counted in `rows`.
        find: returns the place of the row with a given index below `rows`.
        is_text: whether the columns still have to be parsed.
        has_empty_end: whether rows have empty fields after the last column, which are not a column.
        part: the file's own name for the set the rows belong to, e.g. "train"; empty for most formats.
        units: of columns whose whole numbers are durations, what they count, e.g. "ms".
        features: of serialised Examples, the names of those read so far of the file.
        has_examined_images: whether the limits of images were held to while they were read.
        position: the number of bytes of the file read so far, for the progress display.
    """

    rows: int
    find: Callable[[int], Place]
    columns: Mapping[str, pa.Array]
    records: pa.Array | None = None
    rejects: Sequence[Reject] = ()
    is_text: bool = False
    has_empty_end: bool = False
    part: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    features: Collection[str] = ()
    has_examined_images: bool = False
    position: int = 0


def check_columns(
    names: Sized, limits: SourceLimits, *, of: str, remedy: str = "name the columns you need in data.columns"
) -> None:
    """Check that there are no more columns than the limit.

    Args:
        of: the file's name as the user knows it.
        remedy: what helps beside a higher limit.

    Raises:
        FileError: there are more columns.
    """
    if len(names) > limits.columns:
        raise FileError(
            f"{of} has {len(names):,} columns, {limits.exceeded('columns')}",
            hint=f"{remedy}, or raise data.limits.columns",
        )
