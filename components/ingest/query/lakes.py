"""Reads Delta Lake and Iceberg tables on disk, each at one snapshot, whose id identifies the rows.

Files that a table's log names are read only if they are in the table's folder, and code that the log names is
never run.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.ingest.parquet_batches import opened
from slipway.components.ingest.query.duck import Opened, Relation
from slipway.components.ingest.query.file_views import Files
from slipway.components.ingest.query.tables import QueryError, Table

_NANOSECONDS_END_US = (2**63 - 1) // 1000
_METADATA = ".metadata.json"
# Catalogs write 00003-UUID.metadata.json; Hadoop writes v3.metadata.json.
_METADATA_NUMBER = re.compile(r"v?(\d+)(?:-.*)?\.metadata\.json")


def of_lake(table: Table, place: Path) -> Opened:
    """Open a table at the snapshot that it names, or at the latest.

    Args:
        table: a table of kind `delta` or `iceberg`.
        place: absolute path of the table's folder; for Iceberg, also of one of its metadata files.

    Raises:
        QueryError: the package is missing, the folder holds no such table, the snapshot does not exist, the
            table names files elsewhere, or it needs features that its library lacks.
    """
    with _as_query_errors(table):
        return (_delta if table.kind == "delta" else _iceberg)(table, place)


def _delta(table: Table, place: Path) -> Opened:
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise _missing("deltalake>=1.6,<2") from None
    if not (place / "_delta_log").is_dir():
        raise QueryError(f"data.tables.{table.name}.delta: {place} has no _delta_log", hint="name its folder")
    found = DeltaTable(place, version=table.at)
    mapped = found.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mapped != "none":  # the Arrow data set has only the column names in the files
        raise QueryError(
            f"data.tables.{table.name}.delta: column mapping ({mapped[:20]!r}) is not supported",
            hint="write a copy without delta.columnMapping.mode, or one in Parquet, and use that",
        )
    for uri in found.file_uris():
        _within(place, uri, table)

    def relation(_: Path) -> Relation:
        from pyarrow.dataset import ParquetReadOptions

        # Spark writes times of 96 bits. As nanoseconds, which end in 2262, later ones would be others.
        options = ParquetReadOptions(coerce_int96_timestamp_unit="us")
        with _as_query_errors(table):
            return found.to_pyarrow_dataset(parquet_read_options=options)

    # A copied table keeps its id, but its later versions differ, so the files are part of the identity.
    files = sorted(uri.rpartition("/")[2] for uri in found.file_uris())
    digest = sha256("\n".join(files).encode()).hexdigest()[:16]
    return Opened({"delta": str(found.metadata().id), "version": found.version(), "files": digest}, relation)


def _iceberg(table: Table, place: Path) -> Opened:
    try:
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.io.pyarrow import PyArrowFileIO
        from pyiceberg.serializers import FromInputFile
        from pyiceberg.table import StaticTable
    except ImportError:
        raise _missing("pyiceberg>=0.12,<0.13") from None
    file = _metadata_file(table, place)
    folder = file.parent.parent
    metadata = FromInputFile.table_metadata(PyArrowFileIO().new_input(str(file)))

    def local(location: str) -> Path:
        moved = location.removeprefix(metadata.location.rstrip("/") + "/")
        return _within(folder, str(folder / moved if moved != location else location), table)

    class Inside(PyArrowFileIO):
        """Reads only files in the table's folder; paths of a table that was moved are mapped to it."""

        def new_input(self, location: str) -> Any:
            return super().new_input(str(local(location)))

    # Not `StaticTable.from_metadata`, which would import the FileIO class that the metadata names.
    found = StaticTable(("table",), metadata, str(file), Inside(), NoopCatalog("none"))
    snapshot = found.snapshot_by_id(table.at) if table.at is not None else found.current_snapshot()
    if snapshot is None:
        there = ", ".join(str(each.snapshot_id) for each in found.snapshots()[-5:]) or "none"
        raise QueryError(
            f"data.tables.{table.name}.iceberg: there is no snapshot {table.at or ''}".rstrip(),
            hint=f"the latest are {there}",
        )

    def relation(copy: Path) -> Relation:
        from slipway.components.ingest.query.parquet_parts import write_parts

        copy.mkdir(parents=True)
        with _as_query_errors(table):
            # Without a snapshot_id, the columns are those that the table has now: a snapshot has its own.
            scan = found.scan(snapshot_id=table.at)
            for each in scan.plan_files():
                if each.file.file_format == "PARQUET":
                    _refuse_other_times(local(each.file.file_path), found, scan.projection(), table)
            reader = scan.to_arrow_batch_reader()
            _, parts = write_parts(reader.schema, reader, copy)
        return Files("parquet", parts)

    identity: dict[str, object] = {"iceberg": str(metadata.table_uuid), "snapshot": snapshot.snapshot_id}
    # Also of a snapshot that is named: an old one does not say which columns it has.
    read = found.scan(snapshot_id=table.at).projection().schema_id
    if read != snapshot.schema_id:
        identity["schema"] = read
    return Opened(identity, relation)


def _refuse_other_times(file: Path, iceberg: Any, schema: Any, table: Table) -> None:
    """Refuse times of 96 bits, as Hive and Spark write them, that PyIceberg would read as others.

    It takes them for nanoseconds, which end in 2262 and begin again: 9999-12-31, for no end, is 1816-03-29.

    Args:
        iceberg: the table, of PyIceberg.
        schema: the columns that it has now, of PyIceberg; others in the file do not matter.
    """
    with opened(file) as parquet:
        columns = list(map(parquet.schema.column, range(parquet.metadata.num_columns)))
        names = [each.path for each in columns if each.physical_type == "INT96"]
        if not names:
            return
        read = _names_in_file(parquet.schema_arrow, iceberg, schema)
        # PyIceberg and Parquet name the values of lists differently. A column's own name may have points.
        lists = {each.path for each in columns if each.max_repetition_level}
        within = tuple(f"{each}." for each in read)
        names = [each for each in names if each in read or (each in lists and each.startswith(within))]
        for name in names:
            batches = parquet.iter_batches(columns=[name])
            if any(map(_is_beyond, (times for batch in batches for times in _times(batch.column(0))))):
                raise QueryError(
                    f"data.tables.{table.name}.iceberg: column {name!r} in {file.name} holds times of 96 "
                    "bits beyond the years 1678 to 2262, which PyIceberg reads as others",
                    hint="write the table's files again with times of 64 bits: with Spark, "
                    "spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS and rewrite_data_files",
                )


def _names_in_file(arrow: pa.Schema, iceberg: Any, schema: Any) -> set[str]:
    """Return what a file calls the columns of a table, which may have been renamed since, and their parts."""
    from pyiceberg.io.pyarrow import pyarrow_to_schema
    from pyiceberg.schema import prune_columns
    from pyiceberg.types import ListType, MapType

    # As PyIceberg itself: these are selected by their values.
    wanted = {
        each for each in schema.field_ids if not isinstance(schema.find_type(each), (ListType, MapType))
    }
    in_file = pyarrow_to_schema(arrow, iceberg.name_mapping(), downcast_ns_timestamp_to_us=True)
    return set(prune_columns(in_file, wanted, select_full_types=False).column_names)


def _is_beyond(times: pa.Array) -> bool:
    """Return True if any of some times in microseconds is none in nanoseconds."""
    ends = pc.min_max(times.cast(pa.int64())).values()
    farthest: int = max(abs(each.as_py() or 0) for each in ends)
    return farthest > _NANOSECONDS_END_US


def _times(values: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_struct(values.type):
        for each in values.flatten():
            yield from _times(each)
    elif pa.types.is_nested(values.type):
        yield from _times(values.flatten())
    elif pa.types.is_timestamp(values.type):
        yield values


def _metadata_file(table: Table, place: Path) -> Path:
    """Return the metadata file that `place` names, or the one with the highest number."""
    if place.name.endswith(_METADATA) and place.is_file():
        return place
    numbered = [
        (int(found[1]), path.name, path)
        for path in (place / "metadata").glob(f"*{_METADATA}")
        if (found := _METADATA_NUMBER.fullmatch(path.name))
    ]
    if not numbered:
        raise QueryError(
            f"data.tables.{table.name}.iceberg: {place} has no metadata/*{_METADATA}",
            hint="name the table's folder, or the metadata file that its catalog names",
        )
    return max(numbered)[-1]


def _within(folder: Path, uri: str, table: Table) -> Path:
    """Return the path of a file that a table names.

    Raises:
        QueryError: the file is not in the table's folder.
    """
    parts = urlsplit(uri)
    path = Path(unquote(parts.path)) if parts.scheme == "file" else Path(uri)
    if parts.scheme not in ("", "file") or not path.resolve().is_relative_to(folder.resolve()):
        raise QueryError(
            f"data.tables.{table.name}: the table names a file outside of its folder, {uri[:200]}",
            hint=f"copy what it needs to {folder}, or read it with its own tools first",
        )
    return path


@contextmanager
def _as_query_errors(table: Table) -> Iterator[None]:
    """Turn the libraries' errors into QueryErrors."""
    try:
        yield
    except (QueryError, MemoryError):
        raise
    except Exception as error:  # each library has its own error classes
        words = " ".join(str(error).split()) or type(error).__name__
        raise QueryError(f"data.tables.{table.name} cannot be read: {words[:400]}") from error


def _missing(package: str) -> QueryError:
    name = re.split("[<>=]", package, maxsplit=1)[0]
    return QueryError(
        f"this table needs the package {name}, which is not installed",
        hint=f"pip install '{package}' (the extra `lake`)",
    )
