"""What `new` looks at: the first rows, as far as there is room for them."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.errors import ComponentError, SlipwayError
from slipway.components.ingest.source import SourceError
from slipway.components.ingest.storage import StoredFile
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.reading import _format_of, read_table

MEBIBYTE = 1 << 20


@pytest.fixture
def repeated(tmp_path):
    """A Parquet file of less than 10 kB whose rows take 50 MB."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 50, pa.int32()), pa.array(["x" * MEBIBYTE]))
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"t": text, "n": range(50)}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 10_000
    return path


def test_rows_are_read_until_their_values_take_as_much_as_they_may(repeated, tmp_path):
    before = pa.total_allocated_bytes()
    table = read_table(str(repeated), root=tmp_path, most_bytes=8 * MEBIBYTE)
    assert 8 <= table.rows <= 12
    assert not table.is_whole
    assert pa.total_allocated_bytes() - before < 40 * MEBIBYTE
    assert read_table(str(repeated), root=tmp_path).is_whole


def test_more_columns_than_the_limit_are_refused(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(",".join(f"c{index}" for index in range(5001)) + "\n" + "1," * 5000 + "1\n")
    with pytest.raises(ComponentError, match=r"has 5,001 columns, more than data\.limits\.columns \(5,000\)"):
        read_table(str(path), root=tmp_path)


def _csv(tmp_path, columns, rows=30):
    lines = [",".join(columns)] + [",".join(each(row) for each in columns.values()) for row in range(rows)]
    path = tmp_path / "in.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize(
    ("spans", "pattern"),
    [
        (("2027-01-09", "2027-01-10", "2026-12-31"), "{YYYY}-{MM}-{DD}/*.csv"),
        (("9", "10", "2"), "{SPAN}/*.csv"),
        (("9/v3", "10/v2", "10/v1"), "{SPAN}/v{VERSION}/*.csv"),
    ],
)
def test_of_spans_the_latest_is_read(tmp_path, spans, pattern):
    for rows, span in enumerate(spans, start=1):
        (tmp_path / span).mkdir(parents=True)
        (tmp_path / span / "in.csv").write_text("n\n" + "7\n" * rows)
    assert read_table(pattern, root=tmp_path).rows == 2


def test_spans_in_a_store_that_no_run_could_read_are_refused_before_it_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("slipway.pipeline.start.reading.list_files", lambda _: pytest.fail("asked"))
    with pytest.raises(SourceError, match=r"spans are \{SPAN\}, or \{YYYY\}, .* together"):
        read_table("gs://bucket/{YYYY}-{MM}/*.csv", root=tmp_path)


def test_words_for_no_value_behind_a_blank_are_none_to_ingest_too(tmp_path):
    columns = {
        "a": lambda row: str(row),
        " b": lambda row: " NA" if row % 5 == 0 else f" {row}.5",
        " c": lambda row: "   " if row % 5 == 0 else f"{row}",
        " day": lambda row: f" 2024-01-{row + 1:02}",
    }
    table = read_table(_csv(tmp_path, columns), root=tmp_path)
    assert table.kinds == {"a": "int", " b": "float", " c": "int", " day": "text"}
    assert [np.isnan(table.columns[name]).sum() for name in (" b", " c")] == [6, 6]
    assert table.columns[" day"][0] == "2024-01-01"


def test_points_of_numbers_are_looked_at_as_texts_beside_decimal_commas(tmp_path):
    columns = {
        "price": lambda row: f'"{row},5"',
        "area": lambda row: "1.250" if row % 5 == 0 else f"{900 + row}",
        "round": lambda row: "1.000",
    }
    table = read_table(_csv(tmp_path, columns), root=tmp_path)
    assert [table.columns[name].max() for name in columns] == [29.5, 1250, 1000]


def test_texts_that_only_look_like_numbers_are_read_as_text_with_the_reason(tmp_path):
    columns = {
        "phone": lambda row: f"+49151000000{row:02d}",
        "code": lambda row: f"1{row}E4" if row % 2 else f"1{row}",
        "day": lambda row: f"0{1 + row % 9}.0{1 + row % 8}",
        "change": lambda row: f"+{row}.5",
        "amount": lambda row: f" {row}",
        "plain": lambda row: f"{row}.25",
    }
    table = read_table(_csv(tmp_path, columns), root=tmp_path)
    assert table.kinds == {
        "phone": "text", "code": "text", "day": "text", "change": "float", "amount": "int", "plain": "float",
    }  # fmt: skip
    assert table.columns["phone"][3] == "+4915100000003"
    assert table.columns["change"][3] == 3.5
    assert table.value_formats.words == {
        "phone": "30 values with + in front (as '+4915100000000'): text, to keep them as they are",
        "code": "15 values with an exponent, but neither point nor sign (as '11E4'): text, to keep them as "
        "they are",
        "day": "30 values with zeros in front (as '01.01'): text, to keep them as they are",
        "change": "30 values with + in front (as '+0.5'): read as numbers",
        "amount": "30 values with spaces around (as ' 0'): read as numbers",
    }


def test_points_between_thousands_are_no_fractions_though_all_cells_are_numbers(tmp_path):
    columns = {
        "sales": lambda row: f"{row}.500" if row else "950",
        "share": lambda row: f"{row}.125" if row % 2 else f"{row}.5",
        "weight": lambda row: f"{1 + row}.250" if row else "12",
    }
    table = read_table(_csv(tmp_path, columns, rows=40), root=tmp_path)
    assert table.columns["sales"].tolist() == [950, *(row * 1000 + 500 for row in range(1, 40))]
    assert table.columns["share"].max() == 39.125
    assert set(table.value_formats.numbers) == {"sales", "weight"}


def test_whole_numbers_beyond_53_bits_are_read(tmp_path):
    table = read_table(_csv(tmp_path, {"id": lambda row: str(2**53 + 1 + row)}), root=tmp_path)
    assert table.kinds == {"id": "text"}, "fractions would make one of some of them"
    assert len(set(table.columns["id"])) == 30
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"at_ns": [1_700_000_000_000_000_001 + row for row in range(30)]}), path)
    assert read_table(str(path), root=tmp_path).rows == 30


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("data.tfrecord", "data.format to tfrecord"),
        ("data.tfrecord.gz", "data.format to tfrecord"),
        ("data.dta", "pandas.read_stata"),
        ("data.avro", "fastavro.reader"),
        ("data.xlsx", "save the sheet as CSV"),
        ("shop.db", "data.format to sql"),
        ("shop.duckdb", "write_parquet('data.parquet')"),
        ("data.bin", "give the files the suffix of their format"),
    ],
)
def test_other_files_get_the_way_that_works_for_them(tmp_path, name, remedy):
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(UsageError, match="no file whose name ends in") as refused:
        read_table(name, root=tmp_path)
    assert remedy in refused.value.hint


def test_a_column_with_lists_in_some_blocks_only_holds_lists(tmp_path):
    path = tmp_path / "in.jsonl"
    # Past the first block, which ends within a million bytes or five, no row has a list.
    rows = [json.dumps({"a": row, "l": [1, 2], "t": "x" * 1000}) for row in range(6000)]
    path.write_text("\n".join([*rows, '{"a": 1, "l": 3}']) + "\n")
    table = read_table(str(path), root=tmp_path)
    assert list(table.kinds) == ["a", "l", "t"]
    assert (set(table.columns), set(table.lists)) == ({"a", "t"}, {"l"})
    assert len(table.lists["l"]) == table.rows == 6001
    assert [each.tolist() for each in table.lists["l"][-2:]] == [[1, 2], [3]]
    told = table.columns_and_lists["l"]
    assert (len(told), len(set(told)), told[0] == told[1]) == (6001, 2, True)


def test_long_lists_are_told_apart_by_short_texts(tmp_path):
    path = tmp_path / "in.jsonl"
    vectors = [[0.1 * place for place in range(768)], [0.2 * place for place in range(768)]]
    texts = [["a", "b"], ["a', 'b"]]
    rows = [{"v": vectors[row % 2], "t": texts[row % 2]} for row in range(4)]
    path.write_text("\n".join(json.dumps(each) for each in rows))
    told = read_table(str(path), root=tmp_path).columns_and_lists
    for name in ("v", "t"):
        assert told[name].tolist() == [*told[name][:2]] * 2
        assert told[name][0] != told[name][1]
        assert {len(each) for each in told[name]} == {32}


def test_durations_are_known_by_their_type(tmp_path):
    path = tmp_path / "in.parquet"
    took = pa.array([1_200_000_000_000] * 3, pa.duration("ns"))
    pq.write_table(pa.table({"trip_time": took, "start_time": [1, 2, 3]}), path)
    assert read_table(str(path), root=tmp_path).durations == {"trip_time"}


@pytest.mark.parametrize("as_parquet", [False, True])
def test_lists_keep_their_values_and_an_empty_list_is_none(tmp_path, as_parquet):
    rows = [
        {"t": ["a", "é"], "n": [0.5], "i": [1, 2]},
        {"t": [], "n": [], "i": [3]},
        {"t": None, "n": None, "i": [4]},
    ]
    path = tmp_path / ("in.parquet" if as_parquet else "in.jsonl")
    if as_parquet:
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("\n".join(json.dumps(each) for each in rows))
    table = read_table(str(path), root=tmp_path)
    assert [each.tolist() for each in table.lists["t"]] == [["a", "é"], [], []]
    assert [each.tolist() for each in table.lists["i"]] == [[1, 2], [3], [4]]
    assert table.kinds == {"t": "text", "n": "float", "i": "int"}
    # Lists of one value are values.
    assert table.columns["n"][0] == 0.5
    assert np.isnan(table.columns["n"][1:]).all()


def test_a_list_of_bytes_that_are_no_text_is_left_out(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": [1, 2], "raw": [[b"\xff", b"a"], [b"\xfe", b"b"]]}), path)
    assert read_table(str(path), root=tmp_path).unread == {"raw": "bytes that are not text"}


def test_a_column_of_bytes_that_are_no_text_is_left_out(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": [1, 2], "raw": [b"\xff", b"\xfe"], "text": [b"a", b"b"]}), path)
    table = read_table(str(path), root=tmp_path)
    assert set(table.columns) == {"a", "text"}
    assert table.unread == {"raw": "bytes that are not text"}


def test_nested_columns_of_parquet_are_left_out_and_told(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": [1, 2], "who": [{"age": 1}, {"age": 2}]}), path)
    table = read_table(str(path), root=tmp_path)
    assert set(table.columns) == {"a"}
    assert table.unread == {"who": "nested values, struct<age: int64>"}


def test_ids_beyond_64_bits_cost_no_row(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": [1, 2], "id": pa.array([2**63 + 1, 7], pa.uint64())}), path)
    table = read_table(str(path), root=tmp_path)
    assert (table.rows, table.rejected, table.kinds["id"]) == (2, 0, "text")
    assert table.columns["id"].tolist() == [str(2**63 + 1), "7"]


def test_several_ids_beyond_64_bits_in_one_row_cost_no_row(tmp_path):
    path = tmp_path / "rows.parquet"
    wide = {"a": pa.array([2**63 + 1, 7], pa.uint64()), "b": pa.array([10**20, 10**21], pa.decimal128(38, 0))}
    pq.write_table(pa.table({**wide, "c": [1, 2]}), path)
    table = read_table(str(path), root=tmp_path)
    assert (table.rows, table.rejected) == (2, 0)
    assert [list(table.columns[name]) for name in wide] == [[str(2**63 + 1), "7"], [str(10**20), str(10**21)]]


def test_numbers_beyond_32_bits_cost_no_row_and_hide_no_other_wrong_value(tmp_path):
    pq.write_table(pa.table({"far": [1e200, 2e200], "a": [1, 2]}), tmp_path / "far.parquet")
    table = read_table(str(tmp_path / "far.parquet"), root=tmp_path)
    assert (table.rows, table.rejected, table.first_reject) == (2, 0, "")
    ids = {"far": [1e200, 2e200], "id": pa.array([2**63 + 1, 7], pa.uint64())}
    pq.write_table(pa.table(ids), tmp_path / "ids.parquet")
    table = read_table(str(tmp_path / "ids.parquet"), root=tmp_path)
    assert (table.rejected, table.columns["id"].tolist()) == (0, [str(2**63 + 1), "7"])
    (tmp_path / "far.csv").write_text("far,a\n1.5e200,1\n2.5,2,3\n0.5,3\n")
    table = read_table(str(tmp_path / "far.csv"), root=tmp_path)
    assert (table.rows, table.rejected) == (2, 1)
    assert "far.csv line 3: too many fields" in table.first_reject


def test_column_of_bytes_that_are_text_but_in_few_rows_is_kept_and_these_are_reported(tmp_path):
    texts = [f"text {row}".encode() for row in range(60)]
    texts[17] = b"caf\xe9"
    pq.write_table(pa.table({"a": list(range(60)), "t": texts}), tmp_path / "in.parquet")
    table = read_table(str(tmp_path / "in.parquet"), root=tmp_path)
    assert (table.texts, table.unread, table.rows, table.rejected) == (("t",), {}, 59, 1)
    assert "in.parquet at 17, column t: not valid text (b'caf\\xe9'):" in table.first_reject


def test_rows_with_a_value_more_are_refused_as_run_refuses_them(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("a,b\n" + "1,2,3\n" * 30)
    with pytest.raises(ComponentError, match="the first row has 3 values, the header 2 names"):
        read_table(str(path), root=tmp_path)


@pytest.mark.parametrize("name", ["in.parquet", "in.jsonl"])
def test_a_file_without_rows_that_is_no_csv_gets_no_hint_about_csv(tmp_path, name):
    if name == "in.parquet":
        pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / name)
    else:
        (tmp_path / name).write_text("[]\n")
    with pytest.raises(SlipwayError) as refused:
        read_table(name, root=tmp_path)
    assert "CSV" not in refused.value.hint


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["a.csv", "b.csv.gz"], "*.csv*"),
        (["A.CSV", "b.csv", "c.CSV.GZ"], "*.[cC][sS][vV]*"),
        (["a.csv-00000-of-00002", "a.csv-00001-of-00002.zstd"], "*.csv*"),
    ],
)
def test_the_format_of_a_pattern_is_that_of_all_its_files(tmp_path, names, pattern):
    for name in names:
        (tmp_path / name).touch()
    assert _format_of(pattern, tmp_path) == "csv"
    (tmp_path / "z.csv.md5").touch()
    with pytest.raises(UsageError, match="no file whose name ends in"):
        _format_of(pattern, tmp_path)


def test_the_format_of_a_pattern_in_a_store_is_that_of_all_its_files(monkeypatch):
    names = ["gs://bucket/a.csv", "gs://bucket/b.csv.gz"]
    files = [StoredFile(name, 1) for name in names]
    monkeypatch.setattr("slipway.pipeline.start.reading.list_files", lambda pattern: files)
    assert _format_of("gs://bucket/*.csv*", Path()) == "csv"


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("year=2024/part-0.parquet", "*/*.parquet"),
        ("2024/05/rows.csv.gz", "*/*/*.csv.gz"),
    ],
)
def test_tables_in_the_folders_of_a_folder_are_named(tmp_path, file, pattern):
    path = tmp_path / "data" / file
    path.parent.mkdir(parents=True)
    path.touch()
    with pytest.raises(UsageError, match="no file whose name ends in") as caught:
        read_table(str(tmp_path / "data"), root=tmp_path)
    assert f"--data '{tmp_path}/data/{pattern}'" in caught.value.hint
    assert "year=2024, is not read" in caught.value.hint
