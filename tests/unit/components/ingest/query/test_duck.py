"""A SELECT over named files and nothing else."""

import gzip
import sys

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from ctrl_c import interrupted

from slipway.components.ingest.query import duck
from slipway.components.ingest.query.duck import is_ordered, version
from slipway.components.ingest.query.file_views import Files
from slipway.components.ingest.query.tables import QueryError

pytest.importorskip("duckdb")

TRIPS = {"id": [1, 2, 3], "zone": ["a", None, "b"]}


@pytest.fixture
def trips(tmp_path):
    pq.write_table(pa.table(TRIPS), tmp_path / "trips.parquet")
    return Files("parquet", [tmp_path / "trips.parquet"])


def test_rows_of_several_formats_are_joined(ask, trips, tmp_path):
    (tmp_path / "zones.csv.gz").write_bytes(gzip.compress(b"name,zip,size\na,007,1.5\nb,12,2\n"))
    (tmp_path / "sizes.jsonl").write_text('{"name": "a", "width": 3}\n')
    written, rows = ask(
        "SELECT id, zip, size, width FROM trips JOIN zones ON zone = name LEFT JOIN sizes USING (name) "
        "ORDER BY id",
        trips=trips,
        zones=Files("csv", [tmp_path / "zones.csv.gz"]),
        sizes=Files("jsonl", [tmp_path / "sizes.jsonl"]),
    )
    assert (written.rows, written.columns) == (2, ("id", "zip", "size", "width"))
    assert rows == [
        {"id": 1, "zip": "007", "size": 1.5, "width": 3},
        {"id": 3, "zip": "12", "size": 2.0, "width": None},
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("FROM t order\n by ALL LIMIT 5;", True),
        ("(SELECT a FROM t) UNION ALL (SELECT a FROM u) ORDER BY ALL", True),
        ("SELECT a FROM t", False),
        ("SELECT a, row_number() OVER (PARTITION BY (b) ORDER BY a) AS n FROM t", False),
        ("WITH s AS (SELECT a FROM (t) ORDER BY a) SELECT a FROM s JOIN u USING (a)", False),
        ("SELECT a FROM t -- ORDER BY a", False),
        ("SELECT a /* ORDER BY */, 'order by', \"order by\", $$ order by $$, 'it''s (' FROM t", False),
        ("SELECT ')' AS x FROM t ORDER BY (x)", True),
    ],
)
def test_only_an_order_of_the_result_is_one(query, found):
    assert is_ordered(query) is found


def test_an_error_behind_the_first_rows_is_reported(ask):
    query = "SELECT (CASE WHEN range = 3_000_000 THEN 'x' ELSE '1' END)::INT AS a FROM range(3_000_001)"
    with pytest.raises(QueryError, match="the query fails: Conversion Error: Could not convert string 'x'"):
        ask(query)


def test_a_data_set_of_arrow_is_scanned_as_often_as_it_is_named(ask):
    data = ds.dataset(pa.table(TRIPS))
    assert ask("SELECT a.id FROM t a JOIN t b USING (id) ORDER BY id", t=data)[0].rows == 3


def test_equal_rows_have_equal_checksums_in_whatever_order(ask, trips):
    reversed_ = "SELECT unnest(list_reverse(list(t)), max_depth := 2) FROM trips t"
    up, down = (ask(query, trips=trips) for query in ("FROM trips", reversed_))
    assert up[1] == down[1][::-1]
    up = up[0]
    assert up == down[0]
    for other in ("FROM trips UNION ALL FROM trips", "SELECT id, id::TEXT AS zone FROM trips",
                  "SELECT id AS no, zone FROM trips", "SELECT id + 1 AS id, zone FROM trips",
                  "SELECT id::INT AS id, zone FROM trips"):  # fmt: skip
        assert ask(other, trips=trips)[0].checksum != up.checksum


@pytest.mark.parametrize("first", ["", "0 AS a, "])
def test_no_two_lists_have_equal_checksums(ask, first):
    lists = ["NULL", "[]", "[NULL]", "[0]", "[0, NULL]", "[NULL, 0]", "[5]", "[0, 5]", "[0, 0, 5]", "[5, 0]"]
    found = {ask(f"SELECT {first}{each}::INT[] AS tags")[0].checksum for each in lists}
    assert len(found) == len(lists)


@pytest.mark.parametrize("name", ["r", "rows", "kept", "c0", "c1", "h", "hashed"])
def test_no_name_of_a_column_hides_the_others_from_the_checksum(ask, name):
    one, other = (ask(f"SELECT 1 AS {name}, {value} AS other")[0].checksum for value in (2, 3))
    assert one != other


def test_many_rows_become_several_files(ask):
    written, rows = ask("SELECT range AS id, repeat('x', 900) AS t FROM range(200_000)")
    assert written.rows == len(rows) == 200_000


def test_values_are_bound_and_never_become_sql(ask, trips):
    assert ask("FROM trips WHERE zone = $zone", {"zone": "a", "more": 1}, trips=trips)[1] == [
        {"id": 1, "zone": "a"}
    ]
    assert ask("FROM trips WHERE zone = $zone", {"zone": "' OR true --"}, trips=trips)[1] == []
    with pytest.raises(QueryError, match="parameters: zone"):
        ask("FROM trips WHERE zone = $zone", trips=trips)


def test_times_do_not_depend_on_the_machine(ask, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert ask("SELECT TIMESTAMPTZ '2020-01-01 00:00:00+00' ::TEXT AS t")[1] == [
        {"t": "2020-01-01 00:00:00+00"}
    ]


@pytest.mark.parametrize(
    "query",
    [
        "FROM read_parquet('{secret}')",
        "FROM read_csv('/etc/passwd')",
        "FROM read_text('/etc/passwd')",
        "FROM '{secret}'",
        "FROM glob('/etc/*')",
        "FROM read_parquet('https://example.com/x.parquet')",
        "FROM trips WHERE zone = (SELECT content FROM read_text('/etc/passwd'))",
        "SELECT * FROM secret_table",  # a variable of Python's
        "SELECT getenv('HOME')",
    ],
)
def test_nothing_but_the_tables_can_be_read(ask, trips, tmp_path, query):
    secret_table = pa.table({"x": [1]})  # noqa: F841
    pq.write_table(pa.table({"x": [1]}), tmp_path / "secret.parquet")
    with pytest.raises(QueryError, match=r"the query fails: (Permission|Catalog) Error"):
        ask(query.format(secret=tmp_path / "secret.parquet"), trips=trips)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("COPY trips TO '{file}'", "is COPY; it must be one SELECT: a source is only read"),
        ("INSERT INTO trips VALUES (1, 'x')", "is INSERT"),
        ("DROP VIEW trips", "is DROP"),
        ("ATTACH '{file}'", "is ATTACH"),
        ("INSTALL httpfs", "must be one SELECT"),
        ("SET enable_external_access = true", "is SET"),
        ("PIVOT trips ON zone USING sum(id)", "a PIVOT, or several"),
        ("FROM trips; DROP VIEW trips", "holds 2 statements"),
        ("-- nothing", "holds 0 statements"),
        ("SELEC 1", 'Parser Error: syntax error at or near "SELEC" .*LINE 1: SELEC 1'),
        ("SELECT none FROM trips", 'Referenced column "none" not found'),
        ("SELECT zone::INT FROM trips", "Could not convert string 'a' to INT32"),
        ("SELECT id, id FROM trips", "two columns 'id'"),
        ("SELECT {{'x': 1}} AS s", "column 's' of nested values"),
        ("SELECT [[1]] AS s", "column 's' of nested values"),
        ("SELECT INTERVAL 1 DAY AS gap", "column 'gap' of intervals"),
    ],
)
def test_a_wrong_query_is_refused_and_writes_nothing(ask, trips, tmp_path, query, words):
    with pytest.raises(QueryError, match=words):
        ask(query.format(file=tmp_path / "written"), trips=trips)
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize(
    ("value", "words", "remedy"),
    [
        ("[1, 2]::INTEGER[2]", "arrays of one length, INTEGER[2]", 'make it a list: "v"::INTEGER[]'),
        ("[[1]::INTEGER[1]]", "arrays of one length, INTEGER[1][]", 'make it text: to_json("v")'),
        ("'12:00:00+02'::TIMETZ", "TIME WITH TIME ZONE, whose values", 'make it text: "v"::VARCHAR'),
        ("'101'::BIT", "BIT, whose values would not be kept", 'make it text: "v"::VARCHAR'),
        ("['101'::BIT]", "BIT[], whose values would not be kept", 'make it text: "v"::VARCHAR[]'),
        ("1::BIGNUM", "BIGNUM, whose values would not be kept", 'make it text: "v"::VARCHAR'),
    ],
)
def test_a_type_that_would_change_its_values_is_refused_with_the_cast(ask, value, words, remedy):
    with pytest.raises(QueryError) as caught:
        ask(f"SELECT {value} AS v")
    assert f"the query gives a column 'v' of {words}" in caught.value.message
    assert caught.value.hint == remedy
    cast = remedy.partition(": ")[2].replace('"v"', f"({value})")
    assert ask(f"SELECT {cast} AS v")[0].rows == 1


@pytest.mark.timeout(60, method="thread")  # a query that goes on is in C, where no signal ends the test
@pytest.mark.parametrize("query", ["SELECT max(h) AS h FROM {all}", "FROM {all} WHERE h = 7"])
def test_an_interrupt_ends_a_long_query(ask, is_long, query):
    pairs = "(SELECT hash(a.range, b.range) AS h FROM range(10_000_000) a, range(10_000_000) b)"
    with interrupted(0.0, once=is_long(duck)):
        ask(query.format(all=pairs))


def test_without_duckdb_the_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(QueryError, match="needs the package duckdb") as refused:
        version()
    assert refused.value.hint == "pip install 'duckdb>=2,<3' (the extra `sql`)"


def test_the_order_of_rows_counts_where_the_query_has_one_and_a_missing_list_is_not_an_empty_one(ask):
    def checksum(query):
        return ask(query)[0].checksum

    rising = "SELECT i FROM range(3) t(i)"
    assert checksum(f"{rising} ORDER BY i") != checksum(f"{rising} order by i DESC")
    assert checksum(rising) == checksum("SELECT 2 - i AS i FROM range(3) t(i)")
    assert checksum("SELECT NULL::INT[] AS a") != checksum("SELECT []::INT[] AS a")


def test_an_error_that_speaks_of_interruption_is_an_error(ask):
    with pytest.raises(QueryError, match="interrupted"):
        ask("SELECT interrupted FROM (SELECT 1 AS x)")
