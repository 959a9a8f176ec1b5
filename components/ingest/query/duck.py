"""Runs a SELECT with DuckDB over named tables and nothing else, and writes its rows as Parquet.

The session may read the files of its tables only: no other file, no network, no extension, and none of this
can be changed by the SQL. DuckDB is imported when the first query is run.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from slipway.components.ingest.query.parquet_parts import write_parts
from slipway.components.ingest.query.tables import FileKind, QueryError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

INSTALL = "pip install 'duckdb>=2,<3' (the extra `sql`)"
# About a tenth of a second of work, and some megabytes.
_BATCH_ROWS = 1 << 16
_ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)
_NO_VALUES: Mapping[str, object] = MappingProxyType({})
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # a name in the SQL is never a variable of this program
}
# As Ingest types a CSV; dates and truth values stay as they are written.
_CSV = "auto_type_candidates=['BIGINT', 'DOUBLE', 'VARCHAR'], sample_size=-1"
_READERS: Mapping[FileKind, str] = {
    "parquet": "read_parquet([{files}], hive_partitioning={hive})",
    "csv": f"read_csv([{{files}}], {_CSV}, hive_partitioning={{hive}})",
    "jsonl": "read_json([{files}], format='newline_delimited', sample_size=-1, hive_partitioning={hive})",
}


@dataclass(frozen=True, slots=True)
class Files:
    """A table that lies in files.

    Attributes:
        kind: of all of them.
        paths: absolute; at least one.
        is_hive: whether folders named COLUMN=VALUE are columns.
    """

    kind: FileKind
    paths: Sequence[Path]
    is_hive: bool = False


Relation = Files | Any
"""`Files`, or what DuckDB can scan: a data set of Arrow."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A table that is ready to be read.

    Attributes:
        identity: what its rows depend on, as plain data: equal ones, equal rows; None if not known.
        relation: makes what DuckDB scans; takes a folder that does not exist, for rows that must be copied.
    """

    identity: Mapping[str, object] | None
    relation: Callable[[Path], Relation]


@dataclass(frozen=True, slots=True)
class Written:
    """The rows of a query.

    Attributes:
        rows: how many; may be 0.
        columns: their names.
        checksum: equal for equal columns and rows, in whatever order; for one version of DuckDB.
    """

    rows: int
    columns: tuple[str, ...]
    checksum: str


def version() -> str:
    """The version of DuckDB.

    Raises:
        QueryError: it is not installed.
    """
    return str(_duckdb().__version__)


def write_rows(
    query: str,
    relations: Mapping[str, Relation],
    *,
    folder: Path,
    spill: Path,
    values: Mapping[str, object] = _NO_VALUES,
) -> Written:
    """Runs a query and writes its rows into part-00000.parquet and following.

    Args:
        query: one SELECT.
        relations: what it may read, by name.
        folder: where to; exists and is empty.
        spill: a folder for what does not fit into memory.
        values: for the parameters in it, `$name`; it need not have them all.

    Raises:
        QueryError: the query is not one SELECT, fails, or gives columns that no example can hold.
        KeyboardInterrupt: it was interrupted.
    """
    duckdb = _duckdb()
    try:
        with _session(relations, spill) as session:
            statement = _one_select(session.extract_statements(query))
            given = {name: value for name, value in values.items() if name in statement.named_parameters}
            reader = session.sql(query, params=given or None).to_arrow_reader(_BATCH_ROWS)
            _check(reader.schema)
            rows, parts = write_parts(reader.schema, reader, folder)
        with _session({"rows": Files("parquet", parts)}, spill) as session:
            # By position: a name of the query's own (a column `r`, `rows`) would stand for the row.
            names = [f"c{index}" for index in range(len(reader.schema))]
            # A list that is missing is not an empty one, which DuckDB's hash does not tell apart.
            values_of = [*names, *(f"{name} IS NULL" for name in names)]
            # Without ORDER BY the order is the engine's own, and equal rows are equal in any.
            place = ["row_number() OVER ()"] if _ORDERED.search(query) else []
            hashed = ", ".join([*values_of, *place])
            hashes = f"SELECT hash({hashed}) FROM rows AS kept({', '.join(names)})"  # noqa: S608  (our names)
            session.execute(f"SELECT sum(h::HUGEINT), bit_xor(h) FROM ({hashes}) AS hashed(h)")  # noqa: S608
            sums = session.fetchall()
    except (duckdb.Error, RuntimeError) as error:
        # Ctrl-C; Arrow's reader tells it in DuckDB's words.
        is_plain = not isinstance(error, duckdb.Error) and "interrupted" in str(error).lower()
        if is_plain or isinstance(error, duckdb.InterruptException):
            raise KeyboardInterrupt from error
        if not isinstance(error, duckdb.Error):
            raise
        raise _failed(error) from error
    columns = [f"{field.name} {field.type}" for field in reader.schema]
    return Written(rows, tuple(reader.schema.names), repr((rows, sums, columns)))


@contextmanager
def _session(relations: Mapping[str, Relation], spill: Path) -> "Iterator[duckdb.DuckDBPyConnection]":
    files = [path for each in relations.values() if isinstance(each, Files) for path in each.paths]
    spill.mkdir(parents=True, exist_ok=True)
    with _duckdb().connect(":memory:", config=_SETTINGS) as session:
        session.execute("SET TimeZone = 'UTC'")
        session.execute(f"SET temp_directory = {_text(spill)}")
        session.execute(f"SET allowed_paths = [{', '.join(map(_text, files))}]")
        session.execute(f"SET allowed_directories = [{_text(spill)}]")
        session.execute("SET enable_external_access = false")
        session.execute("SET lock_configuration = true")
        for name, relation in relations.items():
            if isinstance(relation, Files):
                paths = ", ".join(map(_text, relation.paths))
                source = _READERS[relation.kind].format(files=paths, hive=str(relation.is_hive).lower())
                session.execute(f'CREATE VIEW "{name}" AS SELECT * FROM {source}')  # noqa: S608  (escaped)
            else:
                session.register(name, relation)
        yield session


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _one_select(statements: "Sequence[duckdb.Statement]") -> "duckdb.Statement":
    if len(statements) != 1:
        raise QueryError(f"the query holds {len(statements)} statements; it must be one SELECT")
    kind = statements[0].type.name
    if kind != "SELECT":
        what = "a PIVOT, or several statements in one" if kind == "MULTI" else kind
        raise QueryError(f"the query is {what}; it must be one SELECT: a source is only read")
    return statements[0]


def _check(schema: "pa.Schema") -> None:
    """Refuses columns that have no place in an example."""
    import pyarrow as pa

    if len(set(schema.names)) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise QueryError(f"the query gives two columns {twice!r}", hint="name one of them anew, with AS")
    for field in schema:
        kind = field.type.value_type if pa.types.is_list(field.type) else field.type
        if pa.types.is_nested(kind) or pa.types.is_union(kind):
            raise QueryError(
                f"the query gives a column {field.name!r} of nested values, {field.type}",
                hint=f"select its parts, as {field.name}.NAME, or make it text: to_json({field.name})",
            )
        if pa.types.is_interval(kind):
            raise QueryError(
                f"the query gives a column {field.name!r} of intervals",
                hint=f"make it a number: date_part('epoch', {field.name})",
            )


def _failed(error: Exception) -> QueryError:
    """DuckDB's words: what is wrong, and the line where."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    where = next((line.strip() for line in lines if line.startswith("LINE ")), "")
    words = lines[0][:400] if lines else type(error).__name__
    return QueryError(f"the query fails: {words}" + (f" ({where[:200]})" if where else ""))


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise QueryError("SQL needs the package duckdb, which is not installed", hint=INSTALL) from None
    return duckdb
