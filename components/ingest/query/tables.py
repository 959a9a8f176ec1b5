"""The tables that a query reads, and their errors. Imports no library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slipway.components.errors import ComponentError
from slipway.components.ingest.file_kinds import DUCKDB_AS_PARQUET

SQL = "sql"
"""The value of `data.format` for a query."""

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
UNPACKED = (".gz", ".zst")  # suffixes that DuckDB unpacks, for text files only
_DATABASES = {
    ".duckdb": DUCKDB_AS_PARQUET,
    **dict.fromkeys(
        (".db", ".sqlite", ".sqlite3"), "an SQLite database is named by `sqlite`, with a `query`"
    ),
}
_GLOB_CHARACTERS = "*?["


class QueryError(ComponentError):
    """A query cannot run: the query or something that it reads is wrong, or a package is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of a query.

    Attributes:
        name: the table's name in the SQL.
        kind: the kind of table, which says what `place` is.
        place: a path or glob, a folder, or the name of an environment variable.
        query: for a database, a SELECT in its own SQL.
        at: the state to read: a version (Delta), a snapshot id (Iceberg), or a name for the state (a server's
            database); None: the latest.
    """

    name: str
    kind: Kind
    place: str
    query: str | None = None
    at: int | str | None = None


def kind_of_files(files: Sequence[Path], *, table: str) -> FileKind:
    """Return the format of a table's files, by their suffixes.

    Raises:
        QueryError: a query cannot read files with a suffix, the formats differ, or a name contains
            characters that SQL takes for a pattern.
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
    is_packed = file.suffix.lower() in UNPACKED
    kind = _SUFFIXES.get(Path(file.stem).suffix.lower() if is_packed else file.suffix.lower())
    if kind is None or (is_packed and kind not in ("csv", "jsonl")):
        raise QueryError(
            f"data.tables.{table}: {file.name} is none of {', '.join(_SUFFIXES)}",
            hint=_DATABASES.get(
                file.suffix.lower(),
                "a file's suffix says how it is read; .gz and .zst may follow .csv and .jsonl",
            ),
        )
    return kind
