"""Reads rows of an SQLite database through Python's own SQLite; anything but reading is denied."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from slipway.components.ingest.file_kinds import DUCKDB_AS_PARQUET
from slipway.components.ingest.query.databases import (
    BATCH_ROWS,
    Batches,
    Convert,
    as_query_errors,
    batches_of,
    chunks_of,
    select_of,
)
from slipway.components.ingest.query.stoppable import stoppable
from slipway.components.ingest.query.tables import QueryError, Table


@contextmanager
def rows_of_sqlite(table: Table, file: Path) -> Iterator[Batches]:
    """Provide the rows of a table's query in an SQLite database; all values of a column decide its type.

    Raises:
        QueryError: the file is not a database, or the query fails.
    """
    # Without its last semicolon the query can be put in brackets, which only a SELECT allows.
    query = f"({select_of(table)})"
    _check_is_database(table, file)
    with (
        as_query_errors(table, None),
        closing(sqlite3.connect(_sqlite_uri(file), uri=True, check_same_thread=False)) as database,
    ):

        def ask(sql: str) -> sqlite3.Cursor:
            return stoppable(lambda: database.execute(sql), stop=database.interrupt)

        ask("PRAGMA trusted_schema = OFF")  # the file's views and defaults are untrusted
        ask("BEGIN")  # all queries see the same state
        database.set_authorizer(_reads_only)
        head = ask(f"SELECT * FROM {query} LIMIT 0")  # noqa: S608  (the user's own SQL)
        names = [column[0] for column in head.description]
        numbered = [f"c{index}" for index in range(len(names))]
        ranks = ", ".join(map(_SQLITE_RANK.format, numbered))
        columns = ", ".join(numbered)
        ranked = ask(f"WITH rows({columns}) AS {query} SELECT {ranks} FROM rows")  # noqa: S608
        [found] = stoppable(ranked.fetchall, stop=database.interrupt)
        kinds = [_SQLITE_TYPES[each or 0] for each in found]
        schema = pa.schema(list(zip(names, (kind for kind, _ in kinds), strict=True)))
        cursor = ask(f"SELECT * FROM {query}")  # noqa: S608
        chunks = chunks_of(lambda: stoppable(lambda: cursor.fetchmany(BATCH_ROWS), stop=database.interrupt))
        yield schema, batches_of(schema, chunks, [convert for _, convert in kinds])


def _check_is_database(table: Table, file: Path) -> None:
    with file.open("rb") as opened:
        head = opened.read(len(_SQLITE_MAGIC))
    if head and head != _SQLITE_MAGIC:  # an empty file is a database without tables
        is_duckdb = head[8:12] == b"DUCK"
        raise QueryError(
            f"data.tables.{table.name}: {file} is not an SQLite database",
            hint=DUCKDB_AS_PARQUET
            if is_duckdb
            else "decrypt it first, or name it by `files` if it is a table",
        )


def _sqlite_uri(file: Path) -> str:
    """Return a URI that opens a file read-only, without SQLite creating files next to it.

    For a database in WAL mode whose log is empty or missing, SQLite would otherwise create the log and its
    index, and leave them behind.
    """
    with file.open("rb") as opened:
        has_log = opened.read(20)[18:] == _SQLITE_WAL
    log = file.with_name(f"{file.name}-wal")
    is_whole = has_log and not (log.is_file() and log.stat().st_size)
    return f"file:{quote(str(file))}?mode=ro" + ("&immutable=1" if is_whole else "")


def _reads_only(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in _SQLITE_READS else sqlite3.SQLITE_DENY


_SQLITE_WAL = bytes([2, 2])  # the file format's write and read versions
_SQLITE_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else _text(value).encode()


_SQLITE_MAGIC = b"SQLite format 3\0"
_SQLITE_RANK = (
    "max(CASE typeof({}) WHEN 'null' THEN 0 WHEN 'integer' THEN 1 WHEN 'real' THEN 2 WHEN 'text' THEN 3 "
    "ELSE 4 END)"
)
# Indexed by the greatest rank among a column's values: null, whole numbers, fractions, text, bytes.
_SQLITE_TYPES: Sequence[tuple[pa.DataType, Convert | None]] = (
    (pa.null(), None),
    (pa.int64(), None),
    (pa.float64(), float),
    (pa.string(), _text),
    (pa.binary(), _bytes),
)
