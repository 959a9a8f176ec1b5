"""The tables that a query reads, and the errors about them. Imports no library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slipway.components.errors import ComponentError

SQL = "sql"
"""The value of `data.format`."""

Kind = Literal["files", "sqlite", "database_env", "delta", "iceberg"]
FileKind = Literal["parquet", "csv", "jsonl", "arrow"]
_SUFFIXES: Mapping[str, FileKind] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_UNPACKED = (".gz", ".zst")  # by DuckDB, and only text
_GLOB_CHARACTERS = "*?["


class QueryError(ComponentError):
    """A query cannot be carried out: it is wrong, something that it reads is, or a package is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of a query.

    Attributes:
        name: in the SQL.
        kind: what `place` is.
        place: a path or glob, a folder, or the name of an environment variable.
        query: of a database: a SELECT in its own SQL.
        at: the state to read: a version (Delta), a snapshot's id (Iceberg), a name for it (a server's
            database); None: the latest.
    """

    name: str
    kind: Kind
    place: str
    query: str | None = None
    at: int | str | None = None


def kind_of_files(files: Sequence[Path], *, table: str) -> FileKind:
    """The encoding of a table's files, by the endings of their names.

    Raises:
        QueryError: an end is none that a query can read, they differ, or a name holds what SQL takes for a
            pattern.
    """
    kinds = {_kind(file, table) for file in files}
    if len(kinds) > 1:
        raise QueryError(
            f"data.tables.{table} names files of several formats: {', '.join(sorted(kinds))}",
            hint="give each format a table of its own",
        )
    return kinds.pop()


def _kind(file: Path, table: str) -> FileKind:
    if any(letter in file.name for letter in _GLOB_CHARACTERS):
        raise QueryError(
            f"data.tables.{table}: {file.name!r} would be read as a pattern", hint="rename that file"
        )
    is_packed = file.suffix.lower() in _UNPACKED
    kind = _SUFFIXES.get(Path(file.stem).suffix.lower() if is_packed else file.suffix.lower())
    if kind is None or (is_packed and kind not in ("csv", "jsonl")):
        raise QueryError(
            f"data.tables.{table}: {file.name} is none of {', '.join(_SUFFIXES)}",
            hint="a file's suffix says how it is read; .gz and .zst may follow .csv and .jsonl",
        )
    return kind
