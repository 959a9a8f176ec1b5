"""Files that a SELECT reads, whose values stay as they are written."""

import datetime
import gzip
import json

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from slipway.components.ingest.query.file_views import Files
from slipway.components.ingest.query.tables import QueryError

pytest.importorskip("duckdb")


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


def test_names_that_differ_in_case_only_are_refused(ask, tmp_path):
    """DuckDB calls the second a_1, and takes a for A."""
    both, apart = {"A": [1], "a": [2]}, {"a": [1], "a_1": [2]}
    for name, columns in (("both", both), ("apart", apart)):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        (tmp_path / f"{name}.csv").write_text(",".join(columns) + "\n1,2\n")
        row = {column: value for column, [value] in columns.items()}
        (tmp_path / f"{name}.jsonl").write_text(f"{{}}\n{json.dumps(row)}\n")
    for kind in ("parquet", "csv", "jsonl"):
        with pytest.raises(
            QueryError, match=rf"both\.{kind} has two columns 'a', in small or capital letters"
        ):
            ask("SELECT a FROM t", t=Files(kind, [tmp_path / f"both.{kind}"]))
        assert {"a": 1, "a_1": 2} in ask("FROM t", t=Files(kind, [tmp_path / f"apart.{kind}"]))[1]
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    assert ask("FROM t", t=Files("csv", [tmp_path / "twice.csv"]))[1] == [{"a": 1, "a_1": 2}]
    with pytest.raises(QueryError, match="it has two columns 'A'"):
        ask("SELECT a FROM t", t=ds.dataset(pa.table(both)))


def test_names_of_a_query_may_differ_in_case_only(ask, tmp_path):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "t.parquet")
    rows = ask('SELECT n AS "A", n + 1 AS "a" FROM t', t=Files("parquet", [tmp_path / "t.parquet"]))[1]
    assert rows == [{"A": 1, "a": 2}]


def test_of_files_with_one_name_in_folders_by_day_the_folder_is_told(ask, tmp_path):
    files = [tmp_path / day / "trips.csv" for day in ("2027-03-01", "2027-03-02")]
    for file in files:
        file.parent.mkdir()
    files[0].write_text("a,b\n1,2\n")
    for rows, words in (
        ("a\n1\n", "2027-03-02/trips.csv and 2027-03-01/trips.csv differ"),
        ("", "-02/trips.csv is"),
    ):
        files[1].write_text(rows)
        with pytest.raises(QueryError, match=words):
            ask("FROM t", t=Files("csv", files))


def test_a_csv_of_0_bytes_is_refused_and_not_a_table_without_rows(ask, tmp_path):
    (tmp_path / "t.csv").touch()
    with pytest.raises(QueryError, match=r"data\.tables\.t: t\.csv is empty"):
        ask("SELECT count(*) AS n FROM t", t=Files("csv", [tmp_path / "t.csv"]))
    (tmp_path / "t.csv").write_text("a\n")
    assert ask("SELECT count(*) AS n FROM t", t=Files("csv", [tmp_path / "t.csv"]))[1] == [{"n": 0}]


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
