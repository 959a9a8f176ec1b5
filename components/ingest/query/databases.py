"""Reads rows from a database server as Arrow batches: a SELECT in its own SQL, in a read-only session.

PostgreSQL is read through ADBC, Arrow's own driver; MySQL and MariaDB through PyMySQL.
An address with a password comes from the environment, and is never part of a message.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.ingest.query.stoppable import stoppable
from slipway.components.ingest.query.tables import QueryError, Table

if TYPE_CHECKING:
    import pymysql

_POSTGRESQL, _MYSQL = ("postgresql", "postgres"), ("mysql", "mariadb")
_RULE = "must look like postgresql://USER:PASSWORD@HOST:PORT/DATABASE, or mysql://..."
# libpq's options that choose the database or its schema.
_OF_PLACE = ("host", "hostaddr", "port", "dbname", "service", "options")
_CONNECT_LIMIT_S = 10
_MYSQL_PORT = 3306
BATCH_ROWS = 1 << 15
# The first keyword after comments, each of which ends at its first */, and opening brackets.
_SELECT = re.compile(
    r"(?:\s|\(|--[^\n]*\n|#[^\n]*\n|/\*(?!!).*?\*/)*+(?:select|with|values|table)\b", re.I | re.S
)

Batches = tuple[pa.Schema, Iterator[pa.RecordBatch]]
Convert = Callable[[Any], Any]


def address_of(table: Table) -> SplitResult:
    """Return the address of a table's database server, from the environment.

    Raises:
        QueryError: the variable is not set, or is not an address; its value is not shown.
    """
    variable = table.place
    where = f"data.tables.{table.name}.database_env: the environment variable {variable}"
    if not os.environ.get(variable):
        raise QueryError(
            f"{where} is not set", hint=f"export {variable}=postgresql://USER:PASSWORD@HOST/DATABASE"
        )
    try:
        address = urlsplit(os.environ[variable])
        _ = address.port
    except ValueError:
        raise QueryError(f"{where} {_RULE}; its host or port cannot be read") from None
    if address.scheme not in _POSTGRESQL + _MYSQL or not address.hostname or len(address.path) < 2:
        raise QueryError(f"{where} {_RULE}")
    if address.netloc.count("@") > 1 or "@" in address.path:
        # Drivers split at the first @, or at a slash: the rest of the password becomes a host or database
        # name, which they show in messages.
        raise QueryError(
            f"{where} {_RULE}; it has more than one @, or an @ after a /",
            hint="in the password, write @ as %40 and / as %2F",
        )
    return address


def identity_of(table: Table) -> dict[str, object] | None:
    """Return what a table's rows depend on, without user and password; None if the table has no `as_of`.

    Raises:
        QueryError: as `address_of`.
    """
    address = address_of(table)
    if table.at is None:
        return None
    options = [each for each in parse_qsl(address.query) if each[0] in _OF_PLACE]
    place = f"{address.scheme}://{address.hostname}:{address.port}{address.path}" + urlencode(options)
    return {"database": sha256(place.encode()).hexdigest()[:16], "query": table.query, "as_of": table.at}


@contextmanager
def rows_of_server(table: Table) -> Iterator[Batches]:
    """Provide the rows of a table's query, from the server that the environment names.

    Raises:
        QueryError: as `address_of`; or the package is missing, the server does not answer, or the query
            fails.
    """
    address = address_of(table)
    read = _postgresql if address.scheme in _POSTGRESQL else _mysql
    with as_query_errors(table, address), read(table, address) as found:
        yield found


def select_of(table: Table) -> str:
    """Return the query without its last semicolon, and with a newline, which ends a last comment.

    Raises:
        QueryError: the query is not a SELECT. Writes inside a SELECT are refused by the read-only session.
    """
    query = (table.query or "").strip().removesuffix(";")
    if not _SELECT.match(query):
        raise QueryError(
            f"data.tables.{table.name}.query must be one SELECT: a source is only read",
            hint="it begins with SELECT, WITH, VALUES or TABLE",
        )
    return f"{query}\n"


@contextmanager
def _postgresql(table: Table, address: SplitResult) -> Iterator[Batches]:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise _missing("adbc-driver-postgresql>=1.13,<2") from None
    options = dict(parse_qsl(address.query))
    options.setdefault("connect_timeout", str(_CONNECT_LIMIT_S))
    url = address._replace(query=urlencode(options, quote_via=quote)).geturl()
    with dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        query = select_of(table)
        stoppable(lambda: cursor.execute(query), stop=cursor.adbc_cancel)
        reader = cursor.fetch_record_batch()
        fetch = partial(stoppable, lambda: next(reader, None), stop=cursor.adbc_cancel)
        schema = pa.schema([pa.field(each.name, _plain_type(each, table)) for each in reader.schema])
        yield schema, _plain_batches(fetch, schema)


def _plain_batches(fetch: Callable[[], pa.RecordBatch | None], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while (batch := fetch()) is not None:
        yield _plain(batch, schema)


def _plain_type(field: pa.Field, table: Table) -> pa.DataType:
    """Return the type to keep a column in; PostgreSQL's numerics, which arrive as text, become floats."""
    if not isinstance(field.type, pa.BaseExtensionType) and not pa.types.is_interval(field.type):
        return field.type
    kind = getattr(field.type, "type_name", str(field.type))
    if kind == "numeric":
        return pa.float64()
    if pa.types.is_string(getattr(field.type, "storage_type", field.type)):
        return pa.string()
    raise QueryError(
        f"data.tables.{table.name}: column {field.name!r} has PostgreSQL's type {kind!r}, which is not "
        "supported",
        hint=f"make it text or a number in the table's query, as {field.name}::text",
    )


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for column, kind in zip(batch.columns, schema.types, strict=True):
        plain = column.storage if isinstance(column.type, pa.BaseExtensionType) else column
        columns.append(pc.cast(plain, kind))
    return pa.record_batch(columns, schema=schema)


@contextmanager
def _mysql(table: Table, address: SplitResult) -> Iterator[Batches]:
    try:
        import pymysql
        from pymysql.converters import encoders
        from pymysql.cursors import SSCursor
    except ImportError:
        raise _missing("pymysql>=1.2,<2") from None
    options = dict(parse_qsl(address.query))
    if unknown := sorted(options.keys() - {"ssl_ca"}):
        raise QueryError(
            f"data.tables.{table.name}: the only option of a MySQL address is ssl_ca, not "
            f"{', '.join(unknown)}",
            hint="with ssl_ca=FILE the server's certificate and name are verified",
        )
    # PyMySQL verifies nothing if it is given only the certificate.
    verified = {f"ssl_{name}": True for name in ("verify_cert", "verify_identity")} | options
    opened = pymysql.connect(
        host=address.hostname,
        port=address.port or _MYSQL_PORT,
        user=unquote(address.username or ""),
        password=unquote(address.password or ""),
        database=unquote(address.path[1:]),
        **(verified if options else {}),
        charset="utf8mb4",
        connect_timeout=_CONNECT_LIMIT_S,
        cursorclass=SSCursor,  # rows are fetched as they are read
        conv=encoders,  # without decoders, so that values stay as the server writes them
        local_infile=False,
    )
    with closing(opened) as connection, connection.cursor() as cursor:
        try:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute("SET SESSION TRANSACTION READ ONLY")
            cursor.execute("START TRANSACTION READ ONLY")
            cursor.execute(select_of(table))
            schema = _mysql_schema(cursor)
            yield schema, batches_of(schema, chunks_of(lambda: cursor.fetchmany(BATCH_ROWS)))
        except BaseException:
            if cursor._result is not None:  # closing it would read all remaining rows
                cursor._result.unbuffered_active = False
            raise


def _mysql_schema(cursor: "pymysql.cursors.Cursor") -> pa.Schema:
    from pymysql.constants import FIELD_TYPE, FLAG

    whole = {getattr(FIELD_TYPE, name) for name in ("TINY", "SHORT", "INT24", "LONG", "LONGLONG", "YEAR")}
    fractions = {getattr(FIELD_TYPE, name) for name in ("FLOAT", "DOUBLE", "DECIMAL", "NEWDECIMAL")}
    bits = {FIELD_TYPE.BIT, FIELD_TYPE.GEOMETRY}
    texts = {getattr(FIELD_TYPE, name) for name in ("BLOB", "TINY_BLOB", "MEDIUM_BLOB", "LONG_BLOB",
                                                    "STRING", "VAR_STRING", "VARCHAR")}  # fmt: skip
    fields = []
    # Only `_result.fields` has the character set of a column.
    for (name, code, *_), packet in zip(cursor.description, cursor._result.fields, strict=True):
        is_bytes = code in bits or (code in texts and packet.charsetnr == _BINARY_CHARACTERS)
        # An unsigned bigint may be too large for int64; as in Parquet, only its row is rejected then. The
        # others fit, and as signed numbers a query may subtract them: DuckDB's uint64 holds nothing below 0.
        is_large = code == FIELD_TYPE.LONGLONG and packet.flags & FLAG.UNSIGNED
        integers = pa.uint64() if is_large else pa.int64()
        kind = integers if code in whole else pa.float64() if code in fractions else pa.string()
        fields.append(pa.field(name, pa.binary() if is_bytes else kind))
    return pa.schema(fields)


_BINARY_CHARACTERS = 63


def chunks_of(fetch: Callable[[], Sequence[Sequence[Any]]]) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield what `fetch` returns until that is empty."""
    while rows := fetch():
        yield rows


def batches_of(
    schema: pa.Schema, chunks: Iterable[Sequence[Sequence[Any]]], converters: Sequence[Convert | None] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield record batches of rows of Python values; text becomes numbers if the schema says so.

    Args:
        converters: for each column a function for its values, None to keep them; empty: keep all.
    """
    for rows in chunks:
        columns = []
        for index, kind in enumerate(schema.types):
            values = [row[index] for row in rows]
            convert = converters[index] if converters else None
            if convert is not None:
                values = [None if value is None else convert(value) for value in values]
            is_text = any(isinstance(value, str) for value in values)
            columns.append(pa.array(values, pa.string()).cast(kind) if is_text else pa.array(values, kind))
        yield pa.record_batch(columns, schema=schema)


@contextmanager
def as_query_errors(table: Table, address: SplitResult | None) -> Iterator[None]:
    """Turn a driver's errors into QueryErrors without the password."""
    try:
        yield
    except QueryError:
        raise
    except MemoryError:
        raise
    except Exception as error:  # each driver has its own error classes
        words = str(error)
        for secret in _secrets(address):
            words = words.replace(secret, "***")
        words = " ".join(words.split())
        raise QueryError(f"data.tables.{table.name} cannot be read: {words[:400]}") from None


def _secrets(address: SplitResult | None) -> Iterable[str]:
    if address is None:
        return ()
    options = [value for name, value in parse_qsl(address.query) if "pass" in name.lower()]
    secrets = {each for each in (address.password, *options) if each}
    return sorted(secrets | {unquote(each) for each in secrets}, key=len, reverse=True)


def _missing(package: str) -> QueryError:
    name = re.split("[<>=]", package, maxsplit=1)[0]
    return QueryError(
        f"this database needs the package {name}, which is not installed",
        hint=f"pip install '{package}' (the extra `sql`)",
    )
