"""Creates views of files in a session of DuckDB, with values as they are written in the files."""

import json
import mmap
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.components.ingest.query.tables import UNPACKED, FileKind, QueryError

if TYPE_CHECKING:
    import duckdb

_PATTERN = re.compile(r"[*?\[]")
# Types as Ingest infers them for a CSV; dates and booleans stay as they are written, and ids beyond 64 bits
# stay exact. By default, DuckDB drops lines that look like comments, and those before what looks like a
# header.
_CSV = "auto_type_candidates=[{types}], sample_size={rows}, files_to_sniff=-1, comment='', skip=0"
_CSV_TYPES = "'BIGINT', 'HUGEINT', 'DOUBLE', 'VARCHAR'"
_CSV_TYPES_BUT_WHOLE = "'DOUBLE', 'VARCHAR'"
# DuckDB reads 0x10 as 16 and 0b10 as 2, as a whole number and as no fraction.
_CODE = re.compile(rb"0[xXbB]")
_NUMBERED = re.compile(r"(.+)_\d+", re.DOTALL)
_HEAD_BYTES = 1 << 18
# A column's type is one that fits all files: by default, DuckDB takes the first file's type, and rounds.
_ALL = "union_by_name=true, hive_partitioning={hive}"
_READERS: Mapping[FileKind, str] = {
    "parquet": f"read_parquet([{{files}}], {_ALL})",
    "csv": f"read_csv([{{files}}], {_CSV}, {_ALL}{{more}})",
    "jsonl": "read_json([{files}], format='newline_delimited', sample_size=-1, "
    f"maximum_sample_files={2**31 - 1}, {_ALL}{{more}})",
}


@dataclass(frozen=True, slots=True)
class Files:
    """A table that is stored in files.

    Attributes:
        paths: absolute paths; at least one.
        is_hive: whether folders named COLUMN=VALUE are columns.
    """

    kind: FileKind
    paths: Sequence[Path]
    is_hive: bool = False


def create_view(session: "duckdb.DuckDBPyConnection", name: str, files: Files) -> None:
    """Create a view of a table's files.

    Args:
        name: of the view, without quotes in it.

    Raises:
        QueryError: the files differ in their columns, a CSV has 0 bytes, or how to read them is unclear.
    """
    for path in files.paths if files.kind == "csv" else ():
        if not path.stat().st_size:
            raise empty_csv(name, named(path, files.paths))
    source = _source(files, files.paths, more=_kept_as_text(session, files))
    session.execute(f'CREATE VIEW "{name}" AS SELECT * FROM {source}')  # noqa: S608  (escaped)
    if files.kind == "jsonl":  # objects need not have all keys
        _name_without_json(session, name, source)
    else:
        _check_alike(session, name, files)


def named(path: Path, paths: Sequence[Path]) -> str:
    """Return the path of one of a table's files below the folder that holds them all: `03-01/trips.csv`."""
    return path.relative_to(os.path.commonpath([each.parent for each in paths])).as_posix()


def empty_csv(table: str, name: str) -> QueryError:
    """Return the error for a CSV of 0 bytes, which is a table without rows to DuckDB."""
    return QueryError(
        f"data.tables.{table}: {name} is empty",
        hint="a CSV needs a line of column names; without rows, that line alone",
    )


def literal(path: Path) -> str:
    """Return a path as DuckDB reads it, with what would be a pattern in brackets."""
    return _PATTERN.sub(r"[\g<0>]", str(path))


def quoted(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: object) -> str:
    """Return a value as a text of SQL."""
    return "'" + str(value).replace("'", "''") + "'"


def _kept_as_text(session: "duckdb.DuckDBPyConnection", files: Files) -> str:
    """Return the further arguments of a reader by which texts stay as they are written; "" if they do."""
    if files.kind == "jsonl":
        return _uuids_as_text(session, files)
    if files.kind == "csv" and any(map(_may_hold_codes, files.paths)):
        return _codes_as_text(session, files)
    return ""


def _uuids_as_text(session: "duckdb.DuckDBPyConnection", files: Files) -> str:
    """Name the types of all columns if one has UUIDs, which DuckDB would write in small letters."""
    found = session.sql(f"SELECT * FROM {_source(files, files.paths)}")  # noqa: S608  (escaped)
    kinds = {name: (str(kind), _with_text_for("UUID", kind)) for name, kind in _kinds(found)}
    if all(kind == plain for kind, plain in kinds.values()):
        return ""
    return f", columns={{{', '.join(f'{text(name)}: {text(plain)}' for name, (_, plain) in kinds.items())}}}"


def _may_hold_codes(path: Path) -> bool:
    """Whether a CSV may hold codes such as 0x10; looking costs a small part of inferring types."""
    if path.suffix.lower() in UNPACKED:
        return True
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return _CODE.search(content) is not None


def _codes_as_text(session: "duckdb.DuckDBPyConnection", files: Files) -> str:
    """Make text of the columns that are numbers only if their codes are read as whole ones."""
    found, plain = (
        list(_kinds(session.sql(f"SELECT * FROM {_source(files, files.paths, types=types)}")))  # noqa: S608
        for types in (_CSV_TYPES, _CSV_TYPES_BUT_WHOLE)
    )
    if len(found) != len(plain):
        raise QueryError(
            f"whether {files.paths[0].name} holds codes such as 0x10 is not known: its delimiter is unclear",
            hint="quote the texts that hold it, or convert the file to Parquet",
        )
    codes = [
        f"{text(name)}: 'VARCHAR'"
        for (name, kind), (_, other) in zip(found, plain, strict=True)
        if str(other) == "VARCHAR" != str(kind)
    ]
    if not codes:
        return ""
    # Where no column is a number, DuckDB takes a first row for the header.
    has_names = [name for name, _ in found] == [name for name, _ in plain]
    return f", types={{{', '.join(codes)}}}{'' if has_names else ', header=false'}"


def _kinds(
    relation: "duckdb.DuckDBPyRelation",
) -> "Iterator[tuple[str, duckdb.sqltypes.DuckDBPyType]]":
    return zip(relation.columns, relation.types, strict=True)


def _name_without_json(session: "duckdb.DuckDBPyConnection", table: str, source: str) -> None:
    """Make text of the values that DuckDB keeps as JSON, in which texts have quotes.

    It keeps those of a key that has values of several types.
    """
    import duckdb

    found = session.execute(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ?", [table]
    ).fetchall()
    kinds = ((quoted(name), kind, _with_text_for("JSON", duckdb.sqltype(kind))) for name, kind in found)
    texts = [
        f"from_json(to_json({name}), {text(json.dumps(plain))}) AS {name}"
        for name, kind, plain in kinds
        if plain != kind
    ]
    if texts:
        columns = f"* REPLACE ({', '.join(texts)})"
        session.execute(f"CREATE OR REPLACE VIEW {quoted(table)} AS SELECT {columns} FROM {source}")  # noqa: S608


def _with_text_for(name: str, kind: "duckdb.sqltypes.DuckDBPyType") -> str:
    """Return a type in SQL with VARCHAR for each type of a name; the text of `kind` if there is none."""
    if str(kind) == name:
        return "VARCHAR"
    if name not in str(kind):
        return str(kind)
    if kind.id == "list":
        return f"{_with_text_for(name, kind.children[0][1])}[]"
    parts = [(part, _with_text_for(name, each)) for part, each in kind.children]
    if kind.id == "map":
        return f"MAP({', '.join(each for _, each in parts)})"
    return f"STRUCT({', '.join(f'{quoted(part)} {each}' for part, each in parts)})"


def _check_alike(session: "duckdb.DuckDBPyConnection", table: str, files: Files) -> None:
    """Check that all files have the same columns; DuckDB would fill in missing values."""
    wanted = None
    for path in files.paths if len(files.paths) > 1 else ():
        found = set(session.sql(f"SELECT * FROM {_source(files, [path], rows=1000)}").columns)  # noqa: S608
        wanted = found if wanted is None else wanted
        if found != wanted:
            raise QueryError(
                f"data.tables.{table}: {named(path, files.paths)} and "
                f"{named(files.paths[0], files.paths)} differ in their columns: only one of them has "
                f"{', '.join(map(repr, sorted(found ^ wanted)[:10]))}",
                hint="give the files the same columns, or make several tables and use UNION ALL BY NAME",
            )


def check_names(session: "duckdb.DuckDBPyConnection", table: str, files: Files) -> None:
    """Check that all columns of a table's view have the names that the files give them.

    SQL takes names that differ in case only for one, and DuckDB numbers the second: `a` would be column `A`.

    Raises:
        QueryError: one has been numbered.
    """
    columns = session.table(table).columns
    there = {name.lower() for name in columns}
    for name in columns:
        found = _NUMBERED.fullmatch(name)
        is_other = found and found[1].lower() in there and found[1] not in columns  # else it is there twice
        if found and is_other and not _is_written(session, name, files):
            raise alike_names(table, files.paths[0].name, found[1])


def _is_written(session: "duckdb.DuckDBPyConnection", name: str, files: Files) -> bool:
    """Return True if a column has its name from the files or, if these are columns, from their folders."""
    if files.is_hive and f"/{name}=" in str(files.paths[0]):
        return True
    if files.kind == "jsonl":
        places = ", ".join(map(text, map(literal, files.paths)))
        key = text(f'$."{name}"')
        found = f"SELECT 1 FROM read_ndjson_objects([{places}]) WHERE json_exists(json, {key}) LIMIT 1"  # noqa: S608
        return '"' in name or session.execute(found).fetchone() is not None
    return name in _written_names(files.paths[0], files.kind)


def alike_names(table: str, where: str, name: str) -> QueryError:
    """Return the error for a table with columns whose names differ in case only."""
    return QueryError(
        f"data.tables.{table}: {where} has two columns {name!r}, in small or capital letters, which are one "
        "in SQL",
        hint="rename one of them",
    )


def _written_names(path: Path, kind: FileKind) -> Collection[str]:
    """Return the names of a Parquet file's columns; of a CSV, the line that holds them."""
    # Imported here because they need Arrow, and a plan whose rows are kept does not.
    import pyarrow.parquet as pq

    from slipway.components.ingest.blocks import InputFile
    from slipway.components.ingest.compression import Stream

    if kind == "parquet":
        return frozenset(pq.read_schema(path).names)
    head = Stream(InputFile(path.name, path)).read(_HEAD_BYTES).partition(b"\n")[0]
    return head.decode(errors="replace").replace('""', '"')


def _source(
    files: Files, paths: Sequence[Path], *, rows: int = -1, types: str = _CSV_TYPES, more: str = ""
) -> str:
    """Return the SQL call that reads files.

    Args:
        files: the table that the files belong to.
        rows: the number of rows of a CSV to infer types and the delimiter from; -1: all.
        types: that a column of a CSV may have.
        more: further arguments, each after a comma.
    """
    names, hive = ", ".join(map(text, map(literal, paths))), str(files.is_hive).lower()
    return _READERS[files.kind].format(files=names, rows=rows, hive=hive, types=types, more=more)
