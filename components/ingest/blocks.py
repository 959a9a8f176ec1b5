"""The output of all format readers: blocks of rows, and the rows that they could not read."""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from slipway.components.errors import ComponentError
from slipway.components.ingest.limits import SourceLimits

# Reasons that more than one format gives.
BEYOND_64_BITS = "a whole number beyond 64 bits"
LIST_WITH_GAP = "a missing value inside a list"


class FileError(ComponentError):
    """A file cannot be ingested at all, or not beyond some place."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of the source.

    Attributes:
        name: as the user knows it; stands in messages, in the quarantine and in the digest.
        path: where its content lies on this machine.
        label: the class of the images in it, where the format takes that from the folder.
    """

    name: str
    path: Path
    label: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands in its file.

    Attributes:
        line: of a text file, from 1; None elsewhere.
        offset: in bytes of the uncompressed file where it has them in order, else the row's number, from 0.
        raw: the row as it stands there.
    """

    line: int | None
    offset: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that cannot become an example.

    Attributes:
        reason: one of a few short phrases, by which rejected rows are counted.
        place: where it stands.
        column: the column that is wrong, where it is one.
        detail: what exactly was found.
    """

    reason: str
    place: Place
    column: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Rows read together.

    Attributes:
        rows: how many rows the columns (or records) hold.
        columns: the values by column: strings yet to be parsed where `is_text`, else int64, uint64, uint8,
            float64, decimals, large_binary, null or a large_list of these.
        records: serialised Examples, where the file holds those; then there are no columns.
        rejects: rows of the same stretch of the file that are not among `rows`.
        find: where the row with an index below `rows` stands.
        is_text: whether the columns are to be parsed.
        has_empty_end: whether rows have empty fields behind the last column, which are no column.
        part: the file's own name for what the rows belong to, e.g. "train"; empty for most formats.
        position: bytes of the file that have been read, for the display.
    """

    rows: int
    find: Callable[[int], Place]
    columns: Mapping[str, pa.Array]
    records: pa.Array | None = None
    rejects: Sequence[Reject] = ()
    is_text: bool = False
    has_empty_end: bool = False
    part: str = ""
    position: int = 0


def check_columns(names: Sized, limits: SourceLimits, *, of: str) -> None:
    """Refuses more columns than the limit.

    Args:
        names: of the columns.
        limits: how many there may be.
        of: the file, as the user knows it.

    Raises:
        FileError: there are more.
    """
    if len(names) > limits.columns:
        raise FileError(
            f"{of} has {len(names):,} columns, {limits.exceeded('columns')}",
            hint="name the columns you need in data.columns, or raise data.limits.columns",
        )
