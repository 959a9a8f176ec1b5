"""Sources by SQL on a real PostgreSQL and a real MariaDB server, on loopback, started by the test."""

import json
import threading
from datetime import UTC, date, datetime
from urllib.parse import quote

import database_servers
import pyarrow as pa
import pytest
from ctrl_c import interrupted
from database_servers import PASSWORD

from slipway.components.ingest.query.databases import rows_of_server
from slipway.components.ingest.query.tables import QueryError, Table

pytestmark = [pytest.mark.slow, pytest.mark.external]
pytest.importorskip("duckdb")


class Shop:
    """A database on a server."""

    def __init__(self, kind, port):
        self.kind, self.port = kind, port
        self.url = f"{kind}://slipway:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/shop"

    def do(self, *statements):
        if self.kind == "postgresql":
            from adbc_driver_postgresql import dbapi

            with dbapi.connect(self.url, autocommit=True) as connection, connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
            return
        import pymysql

        opened = pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="slipway",
            password=PASSWORD,
            database="shop",
            autocommit=True,
        )
        with opened, opened.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


@pytest.fixture(scope="module")
def postgresql():
    with database_servers.postgresql("shop") as port:
        shop = Shop("postgresql", port)
        shop.do(
            "CREATE TABLE orders (id bigint, total numeric(10,2), day date, at timestamptz, note text, "
            "ok bool, token uuid, more jsonb, parts int[], gap interval, raw bytea)",
            "INSERT INTO orders VALUES (1, 12.50, '2026-01-02', '2026-01-02 10:00+02', 'hé', true, "
            "'00000000-0000-0000-0000-000000000001', '{\"a\": 1}', '{1,2}', '1 day', '\\xff')",
            "INSERT INTO orders (id) VALUES (2)",
        )
        yield shop


@pytest.fixture(scope="module")
def mysql():
    with database_servers.mysql("shop") as port:
        shop = Shop("mysql", port)
        shop.do(
            "CREATE TABLE orders (id bigint, total decimal(10,2), day date, at timestamp null, note text, "
            "ok tinyint(1), more json, raw blob, size enum('s', 'm'))",
            "CREATE TABLE stock (t tinyint unsigned, s smallint unsigned, m mediumint unsigned, "
            "i int unsigned, y year, b bigint unsigned)",
            "INSERT INTO stock VALUES (255, 65535, 16777215, 4294967295, 2026, 18446744073709551615)",
            "INSERT INTO orders VALUES (1, 12.50, '2026-01-02', '2026-01-02 10:00', 'hé', true, "
            "'{\"a\": 1}', x'ff', 'm')",
            "INSERT INTO orders (id) VALUES (2)",
        )
        yield shop


@pytest.fixture
def read(request, monkeypatch):
    """Reads a query from a server."""

    def call(kind, query, url=None):
        monkeypatch.setenv("SHOP_URL", url or request.getfixturevalue(kind).url)
        table = Table(name="orders", kind="database_env", place="SHOP_URL", query=query)
        with rows_of_server(table) as (schema, batches):
            return pa.Table.from_batches(list(batches), schema)

    return call


def test_values_of_postgresql(read):
    rows = read(
        "postgresql", "SELECT id, total, day, at, note, ok, more, parts, raw FROM orders ORDER BY id;"
    )
    one, two = rows.to_pylist()
    assert one == {
        "id": 1,
        "total": 12.5,
        "day": date(2026, 1, 2),
        "at": datetime(2026, 1, 2, 8, tzinfo=UTC),
        "note": "hé",
        "ok": True,
        "more": '{"a": 1}',
        "parts": [1, 2],
        "raw": b"\xff",
    }
    assert two == {"id": 2, **dict.fromkeys(list(one)[1:])}
    assert read("postgresql", "SELECT token::text, gap::text FROM orders LIMIT 1 -- one").to_pylist() == [
        {"token": "00000000-0000-0000-0000-000000000001", "gap": "1 day"}
    ]
    for column in ("token", "gap"):
        with pytest.raises(QueryError, match=f"column '{column}' has PostgreSQL's type") as refused:
            read("postgresql", f"SELECT {column} FROM orders")  # noqa: S608
        assert f"{column}::text" in refused.value.hint


def test_values_of_mariadb(read):
    rows = read("mysql", "SELECT *, sum(total) OVER () AS s FROM orders ORDER BY id;")
    one, two = rows.to_pylist()
    assert one == {
        "id": 1,
        "total": 12.5,
        "day": "2026-01-02",
        "at": "2026-01-02 10:00:00",
        "note": "hé",
        "ok": 1,
        "more": '{"a": 1}',
        "raw": b"\xff",
        "size": "m",
        "s": 12.5,
    }
    assert two == {"id": 2, **dict.fromkeys(list(one)[1:-1]), "s": 12.5}
    large = read("mysql", "SELECT 18446744073709551615 AS n, CAST(1 AS SIGNED) AS m")
    assert large.to_pylist() == [{"n": 2**64 - 1, "m": 1}]
    assert large.schema.types == [pa.uint64(), pa.int64()]
    stock = read("mysql", "SELECT * FROM stock")
    assert [*stock.to_pylist()[0].values()] == [255, 65535, 2**24 - 1, 2**32 - 1, 2026, 2**64 - 1]
    assert stock.schema.types == [*[pa.int64()] * 5, pa.uint64()], "only what may be too large is unsigned"


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO orders (id) VALUES (3)",
        "DROP TABLE orders",
        "SELECT 1; DROP TABLE orders",
        "SELECT * INTO copied FROM orders",
        "SELECT * FROM orders FOR UPDATE",
        "SELECT * FROM orders INTO OUTFILE '/tmp/orders.csv'",
        "WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone",
        "COPY orders TO '/tmp/orders.csv'",
        "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE orders",
        "SELECT none FROM orders",
    ],
)
def test_what_writes_or_fails_is_refused(read, kind, query):
    with pytest.raises(QueryError, match=r"data\.tables\.orders") as refused:
        read(kind, query)
    assert PASSWORD not in str(refused.value)
    assert read(kind, "SELECT count(*) AS n FROM orders").to_pylist() == [{"n": 2}]


ROWS = {
    "postgresql": "SELECT generate_series(1, 300000000) AS n",
    "mysql": "SELECT seq FROM seq_1_to_300000000",
}


@pytest.mark.timeout(60, method="thread")
@pytest.mark.parametrize(
    ("kind", "query"),
    [("postgresql", "SELECT pg_sleep(300)::text"), ("mysql", "SELECT sleep(300)")],
)
def test_an_interrupt_ends_a_long_query(read, request, kind, query):
    request.getfixturevalue(kind)
    with interrupted(1):
        read(kind, query)


@pytest.mark.timeout(60, method="thread")
@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_an_interrupt_ends_a_query_whose_rows_arrive(request, monkeypatch, kind):
    monkeypatch.setenv("SHOP_URL", request.getfixturevalue(kind).url)
    table = Table(name="orders", kind="database_env", place="SHOP_URL", query=ROWS[kind])
    arrive = threading.Event()
    with interrupted(0.0, once=arrive), rows_of_server(table) as (_, batches):
        for _ in batches:
            arrive.set()


@pytest.mark.timeout(60, method="thread")
@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_an_error_is_reported_without_reading_all_rows_that_are_left(request, monkeypatch, kind):
    monkeypatch.setenv("SHOP_URL", request.getfixturevalue(kind).url)
    table = Table(name="orders", kind="database_env", place="SHOP_URL", query=ROWS[kind])

    def fill_a_disk():
        with rows_of_server(table) as (_, batches):
            next(batches)
            raise OSError("no room")

    with pytest.raises(QueryError, match="no room"):
        fill_a_disk()


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_a_wrong_login_is_reported_without_the_password(read, request, kind):
    url = request.getfixturevalue(kind).url.replace("slipway:", "stranger:")
    with pytest.raises(QueryError, match=r"(?i)password authentication failed|access denied") as refused:
        read(kind, "SELECT 1", url)
    assert PASSWORD not in str(refused.value)
    assert quote(PASSWORD, safe="") not in str(refused.value)


def test_a_run_asks_the_database_and_trains_anew_only_for_other_rows(postgresql, warm_runner, tmp_path):
    """With `as_of` the database is not even asked; the password is in none of the files."""
    columns = (
        "'Cash' AS payment_type, n % 24 AS trip_start_hour, n % 3 AS tips, 1368183600 AS trip_start_timestamp"
    )
    trips = f"SELECT {columns} FROM generate_series(1, {{}}) AS n"  # noqa: S608
    postgresql.do(f"CREATE VIEW trips AS {trips.format(300)}")

    def states(*sets):
        tables = {"trips": {"database_env": "SHOP_URL", "query": "SELECT * FROM trips"}}
        keys = {
            "data.format": "sql",
            "data.source": "null",
            "schema": "null",
            "data.tables": json.dumps(tables),
        }
        given = [f"--set={key}={value}" for key, value in keys.items()] + [f"--set={each}" for each in sets]
        words = ("run", "taxi", "--to", "Ingest", "--output", str(tmp_path))
        done = warm_runner(*words, *given, SHOP_URL=postgresql.url)
        assert done.returncode == 0, done.stdout + done.stderr
        latest = max((tmp_path / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        nodes = json.loads((latest / "run.json").read_bytes())["nodes"]
        return next(node["state"] for node in nodes if node["id"] == "Ingest")

    day = "data.tables.trips.as_of=monday"
    assert [states(), states(), states(day)] == ["complete", "cached", "cached"]
    postgresql.do(f"CREATE OR REPLACE VIEW trips AS {trips.format(301)}")
    assert [states(day), states()] == ["cached", "complete"]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert PASSWORD.encode() not in content, path
            assert quote(PASSWORD, safe="").encode() not in content, path
