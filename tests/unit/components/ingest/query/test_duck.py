"""A SELECT over named files and nothing else."""

import datetime
import gzip
import json
import sys

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from ctrl_c import interrupted

from slipway.components.ingest.query import duck
from slipway.components.ingest.query.duck import Files, is_ordered, version, write_rows
from slipway.components.ingest.query.tables import QueryError

pytest.importorskip("duckdb")

TRIPS = {"id": [1, 2, 3], "zone": ["a", None, "b"]}


@pytest.fixture
def trips(tmp_path):
    pq.write_table(pa.table(TRIPS), tmp_path / "trips.parquet")
    return Files("parquet", [tmp_path / "trips.parquet"])


@pytest.fixture
def ask(tmp_path):
    """Runs a query; what was written, and its rows."""
    count = 0

    def call(query, values=(), **relations):
        nonlocal count
        count += 1
        folder = tmp_path / f"rows-{count}"
        folder.mkdir()
        written = write_rows(query, relations, folder=folder, spill=tmp_path / "spill", values=dict(values))
        return written, pq.read_table(sorted(folder.iterdir())).to_pylist()

    return call


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


@pytest.mark.parametrize(("kind", "content"), [("csv", "id\n{}\n"), ("jsonl", '{{"id": {}}}\n')])
@pytest.mark.parametrize("folder", ["a[1]", "a?", "a*"])
def test_folder_whose_name_looks_like_a_pattern_is_read_as_it_is(ask, tmp_path, folder, kind, content):
    files = [tmp_path / name / f"rows.{kind}" for name in (folder, "a1")]
    for number, file in enumerate(files):
        file.parent.mkdir()
        file.write_text(content.format(number))
    assert [row["id"] for row in ask("SELECT id FROM t ORDER BY id", t=Files(kind, files))[1]] == [0, 1]
    assert ask("SELECT id FROM t", t=Files(kind, files[:1]))[1] == [{"id": 0}]


def test_in_a_csv_dates_and_truth_values_stay_as_they_are_written(ask, tmp_path):
    (tmp_path / "t.csv").write_text("day,is_late,code\n01/02/2020,true,007\n1/3/2020,false,8\n")
    _, rows = ask("FROM t", t=Files("csv", [tmp_path / "t.csv"]))
    assert rows[0] == {"day": "01/02/2020", "is_late": "true", "code": "007"}


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("a,b\n0x10,5\n0X1f,6\n", {"a": ["0x10", "0X1f"], "b": [5, 6]}),
        ("a;b\n0b10;5\n7;6\n", {"a": ["0b10", "7"], "b": [5, 6]}),
        ("a,b\n1.5,5\n0x10,6\n", {"a": ["1.5", "0x10"], "b": [5, 6]}),
        ("0x10,x\n0x11,y\n", {"column0": ["0x10", "0x11"], "column1": ["x", "y"]}),
        ("a,b\n10x10,5\n0.5,6\n", {"a": ["10x10", "0.5"], "b": [5, 6]}),
        ("a\n0x10\n123456789012345678901234567890\n", {"a": ["0x10", "123456789012345678901234567890"]}),
    ],
)
@pytest.mark.parametrize("is_compressed", [False, True])
def test_in_a_csv_codes_are_no_numbers(ask, tmp_path, content, rows, is_compressed):
    file = tmp_path / ("codes.csv.gz" if is_compressed else "codes.csv")
    file.write_bytes(gzip.compress(content.encode()) if is_compressed else content.encode())
    kept = ask("FROM t", t=Files("csv", [file]))[1]
    assert {name: [row[name] for row in kept] for name in kept[0]} == rows


def test_an_empty_csv_has_no_codes(tmp_path):
    (tmp_path / "empty.csv").touch()
    assert not duck._may_hold_codes(tmp_path / "empty.csv")


def test_in_json_lines_ids_stay_as_they_are_written(ask, tmp_path):
    upper = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
    row = {"id": upper, "ids": [upper], "UUID": 7, "at": "2024-01-05", "it's": {"UUID": upper}}
    (tmp_path / "ids.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({"id": None, "x": [1, "b"]}))
    query = 'SELECT * EXCLUDE "it\'s", "it\'s".UUID AS part FROM t'
    _, (first, second) = ask(query, t=Files("jsonl", [tmp_path / "ids.jsonl"]))
    assert (first["id"], first["ids"], first["part"], first["UUID"]) == (upper, [upper], upper, 7)
    assert (first["at"], second["x"]) == (datetime.date(2024, 1, 5), ["1", "b"])


def test_of_a_csv_no_line_is_left_out(ask, tmp_path):
    (tmp_path / "t.csv").write_text("code,n\n1,x\n#2,y\n" + "3,z\n" * 20)
    assert [row["code"] for row in ask("FROM t", t=Files("csv", [tmp_path / "t.csv"]))[1]][:2] == ["1", "#2"]
    (tmp_path / "u.csv").write_text("exported,today,by me\n\na,b\n" + "1,2\n" * 20)
    with pytest.raises(QueryError, match='"a" not found'):
        ask("SELECT a FROM u", u=Files("csv", [tmp_path / "u.csv"]))


@pytest.fixture
def many(tmp_path):
    """Files of one kind: the last one holds other values, or columns, than those before it."""

    def call(kind, first, last, count=40):
        paths = [tmp_path / f"{number:02}.{kind}" for number in range(count)]
        for path in paths:
            rows = first if path != paths[-1] else last
            if kind == "parquet":
                pq.write_table(pa.table({name: [value] for name, value in rows.items()}), path)
            elif kind == "csv":
                path.write_text(f"{','.join(rows)}\n{','.join(map(str, rows.values()))}\n")
            else:
                path.write_text(json.dumps(rows))
        return Files(kind, paths)

    return call


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_a_type_is_one_that_all_files_need(ask, many, kind):
    rows = ask("FROM t", t=many(kind, {"n": 1}, {"n": 2.7}))[1]
    assert (rows[0], rows[-1]) == ({"n": 1.0}, {"n": 2.7})


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_of_other_columns_are_refused_in_another_order_read(ask, many, kind):
    assert ask("FROM t", t=many(kind, {"a": 1, "b": 2}, {"b": 20, "a": 10}, 2))[1][1] == {"a": 10, "b": 20}
    for last, words in (({"a": 1, "b": 2, "c": 3}, "'c'"), ({"a": 1}, "'b'"), ({"a": 1, "x": 2}, "'b', 'x'")):
        with pytest.raises(QueryError, match=rf"tables\.t: 01\..* only one of them has {words}\n"):
            ask("FROM t", t=many(kind, {"a": 1, "b": 2}, last, 2))


def test_objects_need_not_have_all_keys(ask, many):
    assert ask("FROM t", t=many("jsonl", {"a": 1}, {"a": 2, "b": 3}))[1][-1] == {"a": 2, "b": 3}


def test_values_of_several_types_are_text_without_the_quotes_of_json(ask, tmp_path):
    rows = [
        {"code": 7, "n": {"JSON": 1, 'a"b': 2.5}, "tags": [1, "x"], "m": {f"k{i}": i for i in range(300)}},
        {"code": 'a "b"\n', "n": {"JSON": "two", 'a"b': 3.5}, "tags": ["JSON", None], "m": {"k0": "x"}},
        {"code": None, "n": None, "tags": None, "JSON": "JSON", "m": None},
        {"code": "", "n": {}, "tags": [], "m": {}},
        {"code": {"of": ["x"]}, "JSON": None},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    files = Files("jsonl", [tmp_path / "t.jsonl"])
    query = """SELECT code, tags, t.JSON, n.JSON AS json, n."a""b" AS ab, m['k0'] AS k0 FROM t"""
    columns = zip(*(row.values() for row in ask(query, t=files)[1]), strict=True)
    assert [list(column) for column in columns] == [
        ["7", 'a "b"\n', None, "", '{"of":["x"]}'],
        [["1", "x"], ["JSON", None], None, [], None],
        [None, None, "JSON", None, None],
        ["1", "two", None, None, None],
        [2.5, 3.5, None, None, None],
        ["0", "x", None, None, None],
    ]
    assert len(ask("SELECT code FROM t WHERE code = '7'", t=files)[1]) == 1


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


def test_a_type_is_found_from_all_rows(ask, tmp_path):
    (tmp_path / "t.csv").write_text("n\n" + "1\n" * 30_000 + "x\n")
    written, rows = ask("FROM t", t=Files("csv", [tmp_path / "t.csv"]))
    assert (written.rows, rows[-1]) == (30_001, {"n": "x"})


def test_ids_beyond_64_bits_stay_apart(ask, tmp_path):
    ids = [9007199254740993, 9007199254740994, 10**30]
    (tmp_path / "t.csv").write_text("id\n" + "\n".join(map(str, ids)))
    assert [row["id"] for row in ask("FROM t", t=Files("csv", [tmp_path / "t.csv"]))[1]] == ids


def test_folders_named_by_a_value_are_a_column_where_asked(ask, tmp_path):
    (tmp_path / "day=7").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "day=7/t.parquet")
    files = [tmp_path / "day=7/t.parquet"]
    assert ask("FROM t", t=Files("parquet", files, is_hive=True))[1] == [{"id": 1, "day": 7}]
    assert ask("FROM t", t=Files("parquet", files))[1] == [{"id": 1}]


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
def test_an_interrupt_ends_a_long_query(ask, query):
    pairs = "(SELECT hash(a.range, b.range) AS h FROM range(10_000_000) a, range(10_000_000) b)"
    with interrupted(1):
        ask(query.format(all=pairs))


def test_a_name_with_quotes_is_a_name(ask, tmp_path):
    path = tmp_path / "it's.csv"
    path.write_text("a\n1\n")
    assert ask("FROM t", t=Files("csv", [path]))[1] == [{"a": 1}]


def test_a_damaged_file_is_named(ask, tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(QueryError, match=r"t\.parquet"):
        ask("FROM t", t=Files("parquet", [path]))


def test_of_a_csv_with_a_wrong_line_the_file_is_named(ask, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n\na,b\n1,2\n3,4\n")
    with pytest.raises(QueryError, match=r"Line: 3; Error when converting column .*; file = .*/t\.csv"):
        ask("FROM t", t=Files("csv", [path]))
    path.write_text("a,b\n" + "1,2\n" * 30_000 + "1,2,3\n" + "1,2\n")
    with pytest.raises(QueryError, match=r"Error when sniffing file .*/t\.csv") as refused:
        ask("FROM t", t=Files("csv", [path]))
    assert "format: csv" in refused.value.hint


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
