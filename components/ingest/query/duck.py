"""Runs a SELECT with DuckDB over named tables only, and writes its rows as Parquet.

The session can read only the files of its tables: no other files, no network and no extensions, and the SQL
cannot change this. DuckDB is imported when the first query runs.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from slipway.components.ingest.query.file_views import (
    Files,
    alike_names,
    check_names,
    create_view,
    literal,
    quoted,
    text,
)
from slipway.components.ingest.query.parquet_parts import write_parts
from slipway.components.ingest.query.stoppable import stoppable
from slipway.components.ingest.query.tables import QueryError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

INSTALL = "pip install 'duckdb>=2,<3' (the extra `sql`)"
# About a tenth of a second of work, and a few megabytes.
_BATCH_ROWS = 1 << 16
_OF_A_WRONG_LINE = (
    "Expected Number of Columns",
    "Error when converting",
    "Value with unterminated",
    "file = ",
)
_ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)
# Texts, names and comments, in which words and brackets mean nothing.
_NO_SQL = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/", re.DOTALL)
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_NO_VALUES: Mapping[str, object] = MappingProxyType({})
_NOT_KEPT = ("time with time zone", "bit", "bignum")
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # a name in the SQL is never a variable of this program
}


Relation = Files | Any
"""`Files`, or what DuckDB can scan: an Arrow data set."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A table that is ready to be read.

    Attributes:
        identity: what its rows depend on, as plain data: equal identities mean equal rows; None if unknown.
        relation: returns what DuckDB scans, given a folder to create if rows must be copied.
    """

    identity: Mapping[str, object] | None
    relation: Callable[[Path], Relation]


@dataclass(frozen=True, slots=True)
class Written:
    """The rows of a query, as written to Parquet.

    Attributes:
        rows: the number of rows; may be 0.
        checksum: equal for equal columns and rows with one version of DuckDB; the order of the rows counts
            only if the query has an ORDER BY.
    """

    rows: int
    columns: tuple[str, ...]
    checksum: str


def version() -> str:
    """Return the version of DuckDB.

    Raises:
        QueryError: DuckDB is not installed.
    """
    return str(_duckdb().__version__)


def is_ordered(query: str) -> bool:
    """Return True if a SELECT has an ORDER BY of its own, not only within brackets, as a window has."""
    words, found = _NO_SQL.sub(" ", query), 1
    while found:
        words, found = _IN_BRACKETS.subn(" ", words)
    return _ORDERED.search(words) is not None


def write_rows(
    query: str,
    relations: Mapping[str, Relation],
    *,
    folder: Path,
    spill: Path,
    values: Mapping[str, object] = _NO_VALUES,
) -> Written:
    """Run a query and write its rows to part-00000.parquet and following.

    Args:
        query: one SELECT.
        relations: the tables that the query may read, by name.
        folder: an empty folder for the output.
        spill: a folder for data that does not fit into memory.
        values: values of the query's parameters, `$name`; values that the query does not use are ignored.

    Raises:
        QueryError: the query is not one SELECT, fails, or gives columns that no example can hold.
        KeyboardInterrupt: the user interrupted the query, and it has ended.
    """
    duckdb = _duckdb()
    try:
        with _session(relations, spill) as session:
            _check_names(session, relations)
            schema, rows, parts = stoppable(
                lambda: _write(session, query, values, folder), stop=session.interrupt
            )
        with _session({"rows": Files("parquet", parts)}, spill) as session:
            hashed = _hashed(schema, is_ordered=is_ordered(query))
            sums = stoppable(lambda: session.execute(hashed).fetchall(), stop=session.interrupt)
    except duckdb.Error as error:
        raise _failed(error) from error
    columns = [f"{field.name} {field.type}" for field in schema]
    return Written(rows, tuple(schema.names), repr((rows, sums, columns)))


def _write(
    session: "duckdb.DuckDBPyConnection", query: str, values: Mapping[str, object], folder: Path
) -> "tuple[pa.Schema, int, list[Path]]":
    statement = _one_select(session.extract_statements(query))
    given = {name: value for name, value in values.items() if name in statement.named_parameters}
    relation = session.sql(query, params=given or None)
    _check_kept(dict(zip(relation.columns, relation.types, strict=True)))
    reader = relation.to_arrow_reader(_BATCH_ROWS)
    _check(reader.schema)
    return reader.schema, *write_parts(reader.schema, _batches(reader), folder)


def _batches(reader: "pa.RecordBatchReader") -> "Iterator[pa.RecordBatch]":
    """Yield the batches; after the first one, errors are Arrow's, with DuckDB's message inside."""
    while True:
        try:
            batch = next(reader, None)
        except MemoryError:
            raise
        except Exception as error:
            raise _failed(error) from error
        if batch is None:
            return
        yield batch


def _hashed(schema: "pa.Schema", *, is_ordered: bool) -> str:
    """Return a SELECT that combines the hashes of all rows of the table `rows`, which has these columns."""
    import pyarrow as pa

    # Columns are named by position: the query's own names (a column `r`, `rows`) could stand for the row.
    names = [f"c{index}" for index in range(len(schema))]
    lists = [name for name, kind in zip(names, schema.types, strict=True) if pa.types.is_list(kind)]
    # DuckDB's hash does not distinguish a missing list from an empty one, so the nulls are hashed, too. Nor
    # does it distinguish [0, 5] from [5], or [null] from []: of a list, each value is hashed with its place.
    values = [f"list_transform({name}, lambda v, i: hash(i, v, v IS NULL))" for name in lists]
    values += [*(name for name in names if name not in lists), *(f"{name} IS NULL" for name in names)]
    # Without ORDER BY the order of the rows is arbitrary, so it must not change the hash.
    place = ["row_number() OVER ()"] if is_ordered else []
    hashes = f"SELECT hash({', '.join([*values, *place])}) FROM rows AS kept({', '.join(names)})"  # noqa: S608
    return f"SELECT sum(h::HUGEINT), bit_xor(h) FROM ({hashes}) AS hashed(h)"  # noqa: S608  (our names)


@contextmanager
def _session(relations: Mapping[str, Relation], spill: Path) -> "Iterator[duckdb.DuckDBPyConnection]":
    files = [path for each in relations.values() if isinstance(each, Files) for path in each.paths]
    spill.mkdir(parents=True, exist_ok=True)
    with _duckdb().connect(":memory:", config=_SETTINGS) as session:
        session.execute("SET TimeZone = 'UTC'")
        session.execute(f"SET temp_directory = {text(spill)}")
        paths = dict.fromkeys([*map(str, files), *map(literal, files)])
        session.execute(f"SET allowed_paths = [{', '.join(map(text, paths))}]")
        session.execute(f"SET allowed_directories = [{text(spill)}]")
        session.execute("SET enable_external_access = false")
        session.execute("SET lock_configuration = true")
        stoppable(lambda: _name(session, relations), stop=session.interrupt)
        yield session


def _name(session: "duckdb.DuckDBPyConnection", relations: Mapping[str, Relation]) -> None:
    for name, relation in relations.items():
        if isinstance(relation, Files):
            create_view(session, name, relation)
        else:
            session.register(name, relation)


def _check_names(session: "duckdb.DuckDBPyConnection", relations: Mapping[str, Relation]) -> None:
    """Check that no table has two columns that are one in SQL, since their names differ in case only."""
    for table, relation in relations.items():
        if isinstance(relation, Files):
            check_names(session, table, relation)
            continue
        names = [name.lower() for name in relation.schema.names]
        for name, plain in zip(relation.schema.names, names, strict=True):
            if names.count(plain) > 1:
                raise alike_names(table, "it", name)


def _one_select(statements: "Sequence[duckdb.Statement]") -> "duckdb.Statement":
    if len(statements) != 1:
        raise QueryError(f"the query holds {len(statements)} statements; it must be one SELECT")
    kind = statements[0].type.name
    if kind != "SELECT":
        what = "a PIVOT, or several statements in one" if kind == "MULTI" else kind
        raise QueryError(f"the query is {what}; it must be one SELECT: a source is only read")
    return statements[0]


def _check_kept(kinds: "Mapping[str, duckdb.sqltypes.DuckDBPyType]") -> None:
    """Check that Arrow keeps the values: it drops the offset of a time, and has no bits."""
    for name, kind in kinds.items():
        in_list = kind.id == "list"
        one = kind.children[0][1] if in_list else kind
        if one.id == "array":
            item = one.children[0][1]
            raise QueryError(
                f"the query gives a column {name!r} of arrays of one length, {kind}",
                hint=f"make it text: to_json({quoted(name)})"
                if in_list
                else f"make it a list: {quoted(name)}::{item}[]",
            )
        if one.id in _NOT_KEPT:
            raise QueryError(
                f"the query gives a column {name!r} of {kind}, whose values would not be kept as they are",
                hint=f"make it text: {quoted(name)}::VARCHAR{'[]' if in_list else ''}",
            )


def _check(schema: "pa.Schema") -> None:
    """Check that an example can hold all columns."""
    import pyarrow as pa

    if len(set(schema.names)) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise QueryError(f"the query gives two columns {twice!r}", hint="rename one of them with AS")
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
    """Return a QueryError with DuckDB's message and the line of the query that it points to."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Leave out the SQL that creates the views, which is not the user's.
    where = next((line for line in lines if line.startswith("LINE ") and "CREATE VIEW" not in line), "")
    words = lines[0][:400] if lines else type(error).__name__
    if "CSV Error on Line" in words:  # followed by the line itself, the problem, possible fixes, the file
        words += "".join(f"; {line[:400]}" for line in lines[1:] if line.startswith(_OF_A_WRONG_LINE))
    hint = ""
    if "Error when sniffing file" in words:
        hint = (
            "a single row with too many or too few fields can cause this; `format: csv` quarantines such rows"
        )
    return QueryError(f"the query fails: {words}" + (f" ({where[:200]})" if where else ""), hint=hint)


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise QueryError("SQL needs the package duckdb, which is not installed", hint=INSTALL) from None
    return duckdb
