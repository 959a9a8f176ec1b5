"""Opens the tables of a query as relations that DuckDB can scan."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.components.ingest.query.duck import Opened, Relation
from slipway.components.ingest.query.file_views import Files, empty_csv, named
from slipway.components.ingest.query.tables import UNPACKED, QueryError, Table, kind_of_files

if TYPE_CHECKING:
    from slipway.components.ingest.query.databases import Batches

_PIECE_BYTES = 1 << 20


def open_table(table: Table, *, place: Path, files: Sequence[Path], digests: Mapping[str, str]) -> Opened:
    """Open a table, and determine what its rows depend on.

    Args:
        place: the folder or metadata file of a lake's table.
        files: the files of the table, for SQLite the database file first; empty for the other kinds.
        digests: the digests of the files, by name.

    Raises:
        QueryError: as `lakes.of_lake` and `databases.identity_of`; later, when the relation is made, as
            `of_files`, `databases.rows_of_server` and `sqlite.rows_of_sqlite`.
    """
    if table.kind in ("delta", "iceberg"):
        from slipway.components.ingest.query.lakes import of_lake

        return of_lake(table, place)
    if table.kind == "files":
        # The same files give different rows if their folders are columns.
        return Opened({"files": digests, "folders": _is_hive(table)}, lambda _: of_files(table, files))
    if table.kind == "sqlite":
        from slipway.components.ingest.query.sqlite import rows_of_sqlite

        identity = {"query": table.query, "files": digests}
        return Opened(identity, lambda copy: _copied(rows_of_sqlite(table, files[0]), copy))
    from slipway.components.ingest.query import databases

    return Opened(databases.identity_of(table), lambda copy: _copied(databases.rows_of_server(table), copy))


def of_files(table: Table, paths: Sequence[Path]) -> Relation:
    """Return the relation of a table in files; folders named COLUMN=VALUE in its pattern are columns.

    Raises:
        QueryError: as `kind_of_files`; or a compressed file is damaged or cut short, or a CSV of 0 bytes; or
            a file is not in Arrow's IPC format as its name says, or Arrow files differ in their columns or
            types.
    """
    kind = kind_of_files(paths, table=table.name)
    if kind == "arrow":
        return _arrow(table, paths)
    for path in paths:
        if path.suffix.lower() in UNPACKED and not _unpacked_bytes(table, path, paths) and kind == "csv":
            raise empty_csv(table.name, named(path, paths))
    return Files(kind, paths, is_hive=_is_hive(table))


def _is_hive(table: Table) -> bool:
    return "=" in table.place


def _unpacked_bytes(table: Table, path: Path, paths: Sequence[Path]) -> int:
    """Unpack a compressed file to its end, check it by its checksums, and return its size.

    DuckDB takes a zstd that is cut short for one of fewer rows, or of none, and ignores gzip's checksum.

    Raises:
        QueryError: it is damaged or cut short, or not compressed.
    """
    # Imported here because they need Arrow, and to know what a query depends on does not.
    from slipway.components.ingest.blocks import FileError, InputFile
    from slipway.components.ingest.compression import Stream

    try:
        stream = Stream(InputFile(named(path, paths), path))
        return sum(map(len, iter(lambda: stream.read(_PIECE_BYTES), b"")))
    except FileError as error:
        raise QueryError(f"data.tables.{table.name}: {error.message}", hint=error.hint) from error


def _copied(opened: "AbstractContextManager[Batches]", folder: Path) -> Relation:
    """Copy the rows of a database to Parquet, so that the query can scan them repeatedly."""
    from slipway.components.ingest.query.parquet_parts import write_parts

    folder.mkdir(parents=True)
    with opened as (schema, batches):
        _, parts = write_parts(schema, batches, folder)
    return Files("parquet", parts)


def _arrow(table: Table, paths: Sequence[Path]) -> Any:
    import pyarrow.dataset as ds

    columns = [_checked_columns(path, table, named(path, paths)) for path in paths]
    found = ds.dataset([str(path) for path in paths], format="ipc")
    for path, here in zip(paths, columns, strict=True):
        if here != columns[0]:
            differ = sorted(name for name in here | columns[0] if here.get(name) != columns[0].get(name))
            raise QueryError(
                f"data.tables.{table.name}: {named(path, paths)} and {named(paths[0], paths)} differ in "
                f"their columns or types: {', '.join(map(repr, differ[:10]))}",
                hint="give the files the same columns, or make several tables and use UNION ALL BY NAME",
            )
    return found


def _checked_columns(path: Path, table: Table, name: str) -> dict[str, object]:
    """Return the types of an Arrow file's columns by name, after reading all of it.

    Arrow uses the file's buffers as they are, and checks offsets, indices and texts only on request: of a
    damaged file, DuckDB would read memory beyond them.

    Raises:
        QueryError: the file is damaged, of another format, or has two columns of one name.
    """
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
            for index in range(reader.num_record_batches):
                reader.get_batch(index).validate(full=True)
            names = reader.schema.names
            columns = dict(zip(names, reader.schema.types, strict=True))
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise QueryError(
            f"data.tables.{table.name}: {name} is damaged, or not an Arrow IPC file: "
            f"{str(error).splitlines()[0][:200]}",
            hint="write it with pyarrow.ipc.new_file, or as Feather; a stream of batches is not a file",
        ) from error
    if len(columns) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise QueryError(
            f"data.tables.{table.name}: {name} has two columns {twice!r}", hint="rename one of them"
        )
    return columns
