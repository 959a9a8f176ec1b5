"""The rows of a workload's query: asked for once, and found again."""

import json
import sqlite3
from contextlib import closing, nullcontext

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.ingest.query import databases, duck
from slipway.components.ingest.query.tables import QueryError
from slipway.components.ingest.source import SourceError
from slipway.pipeline.config import DataConfig
from slipway.pipeline.wiring.query_rows import query_rows

pytest.importorskip("duckdb")


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """The rows of a query over `data/trips.parquet`; `ask.asked` are the queries that were run."""
    (tmp_path / "data").mkdir()
    write(tmp_path, [1, 2, 3])
    asked = []
    run = duck.write_rows

    def noted(query, *given, **more):
        asked.append(query)
        return run(query, *given, **more)

    def call(**data):
        data = {"format": "sql", "label": "tips", "tables": {"trips": {"files": "data/*.parquet"}}} | data
        return query_rows(DataConfig(**data), workload="taxi", root=tmp_path, output=tmp_path / "output")

    monkeypatch.setattr(duck, "write_rows", noted)
    call.asked = asked
    return call


def write(root, tips):
    pq.write_table(pa.table({"tips": tips}), root / "data/trips.parquet")


def test_a_query_is_run_once_for_its_text_and_what_it_reads(ask, tmp_path):
    first = ask(query="SELECT tips FROM trips")
    assert ask(query="SELECT tips FROM trips") == first
    assert len(ask.asked) == 1
    write(tmp_path, [1, 2, 3, 4])
    assert ask(query="SELECT tips FROM trips").folder != first.folder
    assert len(ask.asked) == 2
    about = json.loads((first.folder / "result.json").read_bytes())
    assert (about["query"], about["rows"]) == ("SELECT tips FROM trips", 3)
    assert list(about["tables"]["trips"]["files"]) == ["data/trips.parquet"]


def test_another_text_with_the_same_rows_gives_the_same_folder(ask):
    one, other = ask(query="SELECT tips FROM trips"), ask(query="SELECT tips + 0 AS tips FROM trips")
    assert one == other
    assert len(ask.asked) == 2


def test_the_query_stands_in_a_file_or_is_all_of_the_one_table(ask, tmp_path):
    (tmp_path / "trips.sql").write_text("-- All of them.\nSELECT tips FROM trips\n")
    assert ask(source="trips.sql") == ask()
    assert ask.asked == ["-- All of them.\nSELECT tips FROM trips\n", 'SELECT * FROM "trips"']


def test_a_span_is_taken_by_the_tables_and_bound_in_the_query(ask, tmp_path):
    for day, tips in (("19", [1]), ("20", [2, 3])):
        pq.write_table(pa.table({"tips": tips}), tmp_path / f"data/2026-11-{day}.parquet")
    (tmp_path / "data/trips.parquet").unlink()
    given = {"tables": {"trips": {"files": "data/{YYYY}-{MM}-{DD}.parquet"}}}
    latest = ask(**given)
    assert (latest.rows, latest.span, latest.pattern) == (2, 20777, "span-{SPAN}/part-*.parquet")
    assert latest.files[0].parent == latest.folder / "span-20777"
    assert ask(**given) == latest
    assert len(ask.asked) == 1
    earlier = ask(**given, span="2026-11-19", query="SELECT tips FROM trips WHERE $span = 20776")
    assert (earlier.rows, earlier.span) == (1, 20776)


def test_a_span_where_no_table_has_one_is_refused(ask):
    with pytest.raises(QueryError, match="span"):
        ask(query="SELECT tips FROM trips WHERE tips > coalesce($span, 0)")


def test_a_lake_table_is_asked_again_once_it_has_another_snapshot(ask, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    lake = {"tables": {"trips": {"delta": "lake"}}}
    deltalake.write_deltalake(tmp_path / "lake", pa.table({"tips": [1, 2]}))
    first = ask(**lake)
    assert ask(**lake) == first
    deltalake.write_deltalake(tmp_path / "lake", pa.table({"tips": [3]}), mode="append")
    assert ask(**lake).rows == 3
    assert len(ask.asked) == 2
    assert ask(tables={"trips": {"delta": "lake", "version": 0}}) == first
    assert len(ask.asked) == 2


def test_a_write_to_sqlite_is_noticed_also_where_it_stands_beside_the_file(ask, tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE trips AS SELECT 1 AS tips")
        shop = {"tables": {"trips": {"sqlite": "shop.db", "query": "SELECT tips FROM trips"}}}
        assert (ask(**shop).rows, ask(**shop).rows) == (1, 1)
        assert len(ask.asked) == 1
        database.execute("INSERT INTO trips VALUES (2)")
        assert ask(**shop).rows == 2


def test_a_log_of_sqlite_that_appears_meanwhile_is_noticed(ask, tmp_path, monkeypatch):
    shop = {"tables": {"trips": {"sqlite": "shop.db", "query": "SELECT tips FROM trips"}}}
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as database:
        database.execute("CREATE TABLE trips AS SELECT 1 AS tips")
    run = duck.write_rows

    def interfered(*given, **more):
        (tmp_path / "shop.db-wal").write_bytes(b"a commit")
        return run(*given, **more)

    monkeypatch.setattr(duck, "write_rows", interfered)
    with pytest.raises(QueryError, match="written to while the query read them"):
        ask(**shop)


def test_a_server_without_a_state_is_asked_each_time(ask, tmp_path, monkeypatch):
    shop = {"trips": {"database_env": "SHOP_URL", "query": "SELECT tips FROM trips"}}
    with pytest.raises(QueryError, match="SHOP_URL is not set"):
        ask(tables=shop)
    monkeypatch.setenv("SHOP_URL", "postgresql://u:p@127.0.0.1:1/shop")
    batch = pa.record_batch({"tips": [1, 2]})
    monkeypatch.setattr(databases, "rows_of_server", lambda _: nullcontext((batch.schema, iter([batch]))))
    first = ask(tables=shop)
    assert (ask(tables=shop), len(ask.asked)) == (first, 2)
    shop["trips"]["as_of"] = "monday"
    assert (ask(tables=shop), ask(tables=shop), len(ask.asked)) == (first, first, 3)


def test_what_is_wrong_is_reported_by_its_key(ask, tmp_path):
    with pytest.raises(QueryError, match=r"data\.source: there is no file .*none\.sql"):
        ask(source="none.sql")
    with pytest.raises(SourceError, match=r"data\.tables\.trips\.files: data/none\.csv does not exist"):
        ask(tables={"trips": {"files": "data/none.csv"}})
    with pytest.raises(SourceError, match="is not on this machine") as refused:
        ask(tables={"trips": {"files": "gs://bucket/trips.csv"}})
    assert refused.value.hint.endswith("name that as data.tables.trips.files")
    with pytest.raises(QueryError, match="the query gives no row"):
        ask(query="SELECT tips FROM trips WHERE false")
    with pytest.raises(QueryError, match=r"no column 'tips', which data\.label names; nearest: 'tip'"):
        ask(query="SELECT tips AS tip FROM trips")
    assert not [path for path in (tmp_path / "output/queries/taxi").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    "query", [{}, {"query": "SELECT tips, row_number() OVER (ORDER BY tips) FROM trips"}]
)
def test_rows_without_an_order_cannot_be_split_by_their_place(ask, query):
    with pytest.raises(QueryError, match=r"data\.split_by\.row: the query has no ORDER BY") as caught:
        ask(split_by={"row": True}, **query)
    assert "ORDER BY ALL" in caught.value.hint
    assert ask.asked == []
    assert ask(split_by={"row": True}, query="SELECT tips FROM trips ORDER BY ALL").rows == 3


def test_a_file_that_changes_meanwhile_is_noticed(ask, tmp_path, monkeypatch):
    run = duck.write_rows

    def interfered(*given, **more):
        write(tmp_path, [9, 9])
        return run(*given, **more)

    monkeypatch.setattr(duck, "write_rows", interfered)
    with pytest.raises(QueryError, match="written to while the query read them"):
        ask()
