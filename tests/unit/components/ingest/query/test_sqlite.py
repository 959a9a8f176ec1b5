"""Rows of an SQLite database."""

import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest
from ctrl_c import interrupted

from slipway.components.ingest.query import sqlite
from slipway.components.ingest.query.sqlite import rows_of_sqlite
from slipway.components.ingest.query.tables import QueryError, Table


@pytest.fixture
def shop(tmp_path):
    """An SQLite database with a table `orders`."""
    path = tmp_path / "shop's %41.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE orders (id INTEGER, total, note, code, raw)")
        database.executemany(
            "INSERT INTO orders VALUES (?, ?, ?, ?, ?)",
            [(1, 2, None, 7, "x"), (2, 2.5, "hé", "007", b"\xff"), (3, None, None, 8.5, None)],
        )
    database.close()
    return path


def read(path, query):
    with rows_of_sqlite(Table(name="orders", kind="sqlite", place="shop.db", query=query), path) as found:
        schema, batches = found
        return pa.Table.from_batches(list(batches), schema)


def test_types_are_those_that_all_values_of_a_column_need(shop):
    rows = read(shop, "SELECT *, NULL AS none FROM orders ORDER BY id; ")
    assert [str(kind) for kind in rows.schema.types] == [
        "int64",
        "double",
        "string",
        "string",
        "binary",
        "null",
    ]
    assert rows.to_pydict() == {
        "id": [1, 2, 3],
        "total": [2.0, 2.5, None],
        "note": [None, "hé", None],
        "code": ["7", "007", "8.5"],
        "raw": [b"x", b"\xff", None],
        "none": [None] * 3,
    }


@pytest.mark.parametrize(
    "query",
    [
        "WITH late AS (SELECT id FROM orders) SELECT * FROM late -- all",
        "/* all */ SELECT id FROM orders",
        "VALUES (1), (2), (3)",
        "SELECT id FROM orders UNION SELECT id FROM orders",
    ],
)
def test_a_select_is_read_however_it_is_written(shop, query):
    assert read(shop, query).num_rows == 3


def test_without_rows_there_are_columns(shop):
    assert read(shop, "SELECT id FROM orders WHERE id > 9").schema.names == ["id"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("DELETE FROM orders", "must be one SELECT"),
        ("ATTACH 'other.db' AS other", "must be one SELECT"),
        ("PRAGMA user_version = 1", "must be one SELECT"),
        ("WITH x AS (SELECT 1) DELETE FROM orders", "syntax error"),
        ("SELECT 1; DELETE FROM orders", "syntax error"),
        ("SELECT load_extension('x')", "not authorized|no such function"),
        ("SELECT none FROM orders", "no such column: none"),
        ("SELECT 1) UNION SELECT (1", "syntax error|columns"),
    ],
)
def test_what_writes_or_fails_is_refused(shop, query, words):
    before = shop.read_bytes()
    with pytest.raises(QueryError, match=words):
        read(shop, query)
    assert shop.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        (b"id,total\n" * 1000, "by `files`"),
        (b"u\xba\x1eT\x01\x134\x11DUCK" + bytes(2000), "duckdb.connect"),
    ],
)
def test_what_is_no_database_is_reported(tmp_path, content, remedy):
    path = tmp_path / "x.db"
    path.write_bytes(content)
    with pytest.raises(
        QueryError, match=r"data\.tables\.orders: .*x\.db is not an SQLite database"
    ) as refused:
        read(path, "SELECT * FROM orders")
    assert remedy in refused.value.hint


@pytest.mark.timeout(60, method="thread")  # a query that goes on is in C, where no signal ends the test
def test_an_interrupt_ends_a_long_query(shop, is_long):
    with interrupted(0.0, once=is_long(sqlite)):
        read(shop, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")


def test_nothing_is_written_beside_a_database_with_a_log(tmp_path):
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE orders AS SELECT 1 AS id")
    for _ in range(2):
        assert read(path, "SELECT id FROM orders").to_pydict() == {"id": [1]}
        assert [each.name for each in tmp_path.iterdir()] == ["shop.db"]
