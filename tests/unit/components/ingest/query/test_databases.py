"""SQLite, and what needs no server; tests/integration/ingest/test_databases.py has PostgreSQL and MariaDB."""

import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest

from slipway.components.ingest.query.databases import address_of, identity_of, rows_of_server, rows_of_sqlite
from slipway.components.ingest.query.tables import QueryError, Table

SECRET = "s3cr%40t"  # noqa: S105  (of no server)


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


def test_what_is_no_database_is_told(tmp_path):
    path = tmp_path / "x.db"
    path.write_text("id,total\n" * 1000)
    with pytest.raises(QueryError, match=r"data\.tables\.orders cannot be read: file is not a database"):
        read(path, "SELECT * FROM orders")


@pytest.mark.timeout(60, method="thread")  # a query that goes on is in C, where no signal ends the test
def test_an_interrupt_ends_a_long_query(shop, interrupted):
    with interrupted(0.5):
        read(shop, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")


def test_nothing_is_written_beside_a_database_with_a_log(tmp_path):
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE orders AS SELECT 1 AS id")
    for _ in range(2):
        assert read(path, "SELECT id FROM orders").to_pydict() == {"id": [1]}
        assert [each.name for each in tmp_path.iterdir()] == ["shop.db"]


@pytest.fixture
def server(monkeypatch):
    """A table of a server's, whose address is given."""

    def call(address, *, query="SELECT 1", at=None):
        monkeypatch.setenv("SHOP_URL", address)
        return Table(name="orders", kind="database_env", place="SHOP_URL", query=query, at=at)

    return call


@pytest.mark.parametrize(
    "address",
    [
        "", "shop", f"https://u:{SECRET}@host/shop", f"postgresql://u:{SECRET}@host", f"mysql://u:{SECRET}@/shop",
        f"postgresql://u:{SECRET}@host:x/shop", f"postgresql://u:{SECRET}@[/shop",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_not_shown(server, address):
    with pytest.raises(QueryError, match="the environment variable SHOP_URL") as refused:
        address_of(server(address))
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_database_is_known_by_its_address_without_the_password_and_by_its_state(server):
    one = identity_of(server(f"postgresql://u:{SECRET}@host/shop", at="2026-11-20"))
    assert one == identity_of(server("postgresql://other:password@host/shop", at="2026-11-20"))
    assert one != identity_of(server(f"postgresql://u:{SECRET}@staging/shop", at="2026-11-20"))
    assert one != identity_of(server(f"postgresql://u:{SECRET}@host/shop", at="2026-11-21"))
    assert one != identity_of(server(f"postgresql://u:{SECRET}@host/shop", at="2026-11-20", query="SELECT 2"))
    assert SECRET not in str(one)
    assert "host" not in str(one)
    assert identity_of(server(f"postgresql://u:{SECRET}@host/shop")) is None


@pytest.mark.parametrize(
    ("scheme", "package"), [("postgresql", "adbc_driver_postgresql"), ("mariadb", "pymysql")]
)
def test_without_its_driver_the_package_is_named(server, monkeypatch, scheme, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with (
        pytest.raises(QueryError, match="needs the package") as refused,
        rows_of_server(server(f"{scheme}://u:{SECRET}@host/shop")),
    ):
        pass
    assert refused.value.hint.startswith("pip install '")


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_server_that_does_not_answer_is_told_without_the_password(server, scheme):
    with (
        pytest.raises(QueryError, match=r"data\.tables\.orders cannot be read: .*refused") as refused,
        rows_of_server(server(f"{scheme}://u:{SECRET}@127.0.0.1:1/shop")),
    ):
        pass
    assert SECRET not in str(refused.value)
    assert "s3cr@t" not in str(refused.value)


@pytest.mark.parametrize("password", ["s3cr@t", "12/s3cr"])
def test_an_at_sign_or_slash_of_a_password_is_escaped_or_refused_and_not_shown(server, password):
    with pytest.raises(QueryError, match="more than one @, or an @ behind a /") as caught:
        address_of(server(f"postgresql://me:{password}@127.0.0.1/shop"))
    assert "s3cr" not in str(caught.value)
    assert "%40" in caught.value.hint


def test_what_mysql_would_not_do_is_refused_and_a_certificate_is_verified(server, monkeypatch):
    pymysql = pytest.importorskip("pymysql")
    asked = []

    def connect(**options):
        asked.append(options)
        raise pymysql.err.OperationalError("no server")

    monkeypatch.setattr(pymysql, "connect", connect)
    for options, words in (
        ("ssl_mode=REQUIRED", "may have the option ssl_ca, not ssl_mode"),
        ("ssl_ca=/ca", "no server"),
    ):
        with (
            pytest.raises(QueryError, match=words),
            rows_of_server(server(f"mysql://me:pw@127.0.0.1/shop?{options}")),
        ):
            pass
    [options] = asked
    assert {name: value for name, value in options.items() if name.startswith("ssl")} == {
        "ssl_ca": "/ca",
        "ssl_verify_cert": True,
        "ssl_verify_identity": True,
    }
