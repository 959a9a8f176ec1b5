"""Parquet files: what their columns become, and which rows and files are refused."""

import json
import sys
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.convert import Report

ALL = {"split": {"all": 1}}


def test_parquet_columns_of_all_plain_types(ingest, parquet):
    import datetime
    from decimal import Decimal

    path = parquet(
        {
            "i8": pa.array([1, None], pa.int8()),
            "u64": pa.array([2**40, 3], pa.uint64()),
            "f": pa.array([1.5, None], pa.float32()),
            "b": pa.array([True, False]),
            "s": pa.array(["é", ""]),
            "y": pa.array([b"\xff", None]),
            "d": pa.array([Decimal("1.25"), None]),
            "t": pa.array([datetime.date(2024, 1, 31), None]),
            "c": pa.array(["x", "x"]).dictionary_encode(),
            "l": pa.array([[1, 2], None]),
            "v": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
            "w": pa.array([["a", "bc"], []]),
            "e": pa.nulls(2),
        }
    )
    first, second = ingest(path, format="parquet", **ALL).rows
    assert first == {
        "i8": [1], "u64": [2**40], "f": [1.5], "b": [1], "s": ["é".encode()], "y": [b"\xff"], "d": [1.25],
        "t": [b"2024-01-31"], "c": [b"x"], "l": [1, 2], "v": [1.0, 2.0], "w": [b"a", b"bc"], "e": None,
    }  # fmt: skip
    assert second == {
        "i8": [], "u64": [3], "f": [], "b": [0], "s": [b""], "y": [], "d": [],
        "t": [], "c": [b"x"], "l": [], "v": [3.0, 4.0], "w": [], "e": None,
    }  # fmt: skip


ODD_TIMES = {
    "nanoseconds": (pa.array([1, 2], pa.timestamp("ns")), "1970-01-01 00:00:00.000000002"),
    "nanoseconds of a day": (pa.array([1, 2], pa.time64("ns")), "00:00:00.000000002"),
    "a length in nanoseconds": (pa.array([1, 2], pa.duration("ns")), "2"),
    "beyond year 9999": (pa.array([0, 2**58], pa.timestamp("us")), "11103-08-29 17:22:31.711744"),
    "a zone as an offset": (pa.array([0, 60], pa.timestamp("s", "+05:30")), "1970-01-01 05:31:00+05:30"),
}


@pytest.mark.parametrize(("times", "raw"), ODD_TIMES.values(), ids=ODD_TIMES)
def test_row_with_a_time_that_python_lacks_is_quarantined(ingest, parquet, monkeypatch, times, raw):
    monkeypatch.setitem(sys.modules, "pandas", None)  # as in Ingest's further processes
    path = parquet({"t": times, "f": [1.5, 1e300], "l": [[1], [1]]})
    found = ingest(path, format="parquet", **ALL)
    assert [row["f"] for row in found.rows] == [[1.5]]
    assert [reject["raw"] for reject in found.rejects] == [f"{{'t': '{raw}', 'f': '1e+300', 'l': '[1]'}}"]
    found = ingest(parquet({"t": times, "l": [[1], [1, None]]}), format="parquet", **ALL)
    assert [reject["reason"] for reject in found.rejects] == ["a missing value inside a list"]


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("+05:30", b"1970-01-01 05:30:01.000+0530"),
        ("-02:00", b"1969-12-31 22:00:01.000-0200"),
        ("UTC", b"1970-01-01 00:00:01.000Z"),
    ],
)
def test_parquet_times_of_a_zone_have_its_time_and_offset(ingest, parquet, zone, text):
    times = pa.array([1, None], pa.timestamp("s", zone))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1], pa.int32()), times[:1])
    found = ingest(parquet({"t": times, "l": lists, "n": [1, 2]}), format="parquet", **ALL)
    assert [(row["t"], row["l"]) for row in found.rows] == [([text], [text]), ([], [])]


def test_parquet_time_beyond_all_years_is_a_text_with_its_offset_too(ingest, parquet):
    times = pa.array([2**63 - 1], pa.timestamp("us", "+05:30"))
    [row] = ingest(parquet({"t": times}), format="parquet", **ALL).rows
    assert b"out of range" in row["t"][0]


@pytest.mark.parametrize("zone", ["Foo/Bar", "+99:99", "../../etc/passwd"])
def test_parquet_times_of_an_unknown_zone_are_refused_by_name(ingest, parquet, zone):
    path = parquet({"n": [1], "t": pa.array([[1]], pa.list_(pa.timestamp("s", zone)))})
    with pytest.raises(FileError, match="column 't' has the time zone") as caught:
        ingest(path, format="parquet", **ALL)
    assert zone in caught.value.message
    assert "UTC" in caught.value.hint
    assert len(ingest(path, format="parquet", columns=("n",), **ALL).rows) == 1


def test_parquet_times_as_spark_writes_them_are_those_that_were_written(ingest, parquet):
    """As 96 bits, which Arrow takes for nanoseconds: 9999-12-31, for no end, would become 1816-03-29."""
    times = [datetime(2024, 1, 2, 3, 4, 5, 678901), datetime(9999, 12, 31), datetime(1, 1, 1)]
    column = {"t": pa.array(times, pa.timestamp("us"))}
    path = parquet(column, use_deprecated_int96_timestamps=True, store_schema=False)
    assert [row["t"] for row in ingest(path, format="parquet", **ALL).rows] == [
        [b"2024-01-02 03:04:05.678901"],
        [b"9999-12-31 00:00:00.000000"],
        [b"0001-01-01 00:00:00.000000"],
    ]


def test_parquet_files_are_merged_to_the_greater_type(ingest, parquet):
    parquet({"a": [1, 2]}, "1.parquet")
    path = parquet({"a": [0.5]}, "2.parquet")
    assert [row["a"] for row in ingest(path.parent / "*.parquet", format="parquet", **ALL).rows] == [
        [1.0],
        [2.0],
        [0.5],
    ]


def test_parquet_value_of_another_type_than_the_schema_says_is_quarantined(ingest, parquet):
    found = ingest(parquet({"a": ["1", "x", None]}), format="parquet", known={"a": ColumnType.INT}, **ALL)
    assert [row["a"] for row in found.rows] == [[1], []]
    assert [(r["offset"], r["column"], r["reason"]) for r in found.rejects] == [
        (1, "a", "not a whole number")
    ]


def test_nested_parquet_is_refused_by_name_and_chosen_columns_are_read(ingest, parquet):
    path = parquet({"a": [1], "p": [{"x": 1}]})
    with pytest.raises(FileError, match="column 'p' is nested") as caught:
        ingest(path, format="parquet")
    assert "data.columns" in caught.value.hint
    assert ingest(path, format="parquet", columns=("a",), **ALL).rows == [{"a": [1]}]


def test_parquet_that_is_nested_a_thousandfold_is_refused(ingest, tmp_path):
    # Arrow does not write such a file. Its metadata in Thrift: 1,002 nodes, a group has one other in it.
    root, group, leaf = b"H\1s\x15\2\0", b"5\2\x18\1a\x15\2\0", b"\x15\2%\2\x18\1b\0"
    metadata = b"\x15\2\x19\xfc\xea\7" + root + 1000 * group + leaf + b"\x16\0\x19\x0c\0"
    path = tmp_path / "deep.parquet"
    path.write_bytes(b"PAR1" + metadata + len(metadata).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(FileError, match=r"deep\.parquet: a column is nested too deeply"):
        ingest(path, format="parquet")


@pytest.mark.parametrize("cut", [0, 3, 100, -1])
def test_parquet_cut_short_or_none_at_all_is_refused(ingest, parquet, cut):
    path = parquet({"a": list(range(1000))})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(FileError, match=r"in\.parquet is not a readable Parquet file"):
        ingest(path, format="parquet")


def test_parquet_lists_of_one_length_that_are_not_in_every_row_are_refused_as_such(ingest, parquet):
    """The file is whole, as pandas and others write embeddings; written again, it would be the same."""
    path = parquet(pa.table({"e": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2))}))
    with pytest.raises(FileError, match="a column of lists of one length lacks a list in some rows") as found:
        ingest(path, format="parquet", **ALL)
    assert "no size" in found.value.hint


def test_parquet_with_a_name_that_is_no_text_is_refused(ingest, parquet):
    path = parquet({"abcd": [1]})
    path.write_bytes(path.read_bytes().replace(b"abcd", b"ab\xffd"))
    with pytest.raises(FileError, match=r"in\.parquet is not a readable Parquet file"):
        ingest(path, format="parquet")


def test_parquet_files_with_other_columns_are_refused(ingest, parquet):
    parquet({"a": [1], "b": [2]}, "1.parquet")
    path = parquet({"a": [1]}, "2.parquet")
    with pytest.raises(
        FileError, match=r"2\.parquet has different columns from the files beside it: lacks \['b'\]"
    ):
        ingest(path.parent / "*.parquet", format="parquet")


def test_parquet_that_names_a_column_twice_is_refused(ingest, tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), path)
    with pytest.raises(FileError, match=r"in\.parquet: two columns are named 'a'"):
        ingest(path, format="parquet")


def test_parquet_decimals_without_decimals_are_whole_numbers(ingest, parquet):
    ids = [Decimal(2**53 + 1), Decimal(2**63), None, Decimal(-(2**63))]
    columns = {
        "id": pa.array(ids, pa.decimal128(38, 0)),
        "u": pa.array([1, 2, 2**64 - 1, 3], pa.uint64()),
        "price": pa.array([Decimal("1.10"), None, None, None]),
    }
    path = parquet(columns)
    found = ingest(path, format="parquet", **ALL)
    assert [(row["id"], row["u"]) for row in found.rows] == [([2**53 + 1], [1]), ([-(2**63)], [3])]
    assert [(r["offset"], r["column"], r["reason"], r["detail"]) for r in found.rejects] == [
        (1, "id", "a whole number beyond 64 bits", "'9223372036854775808'"),
        (2, "u", "a whole number beyond 64 bits", "'18446744073709551615'"),
    ]
    as_text = ingest(path, format="parquet", types={"id": "text", "u": "text", "price": "text"}, **ALL)
    assert as_text.rows[0] == {"id": [b"9007199254740993"], "u": [b"1"], "price": [b"1.10"]}
    assert as_text.rejects == []


def test_parquet_durations_are_numbers_of_their_unit(ingest, parquet):
    path = parquet({"d": pa.array([5, None], pa.duration("ms")), "t": pa.array([7, 8], pa.time32("ms"))})
    assert ingest(path, format="parquet", **ALL).rows == [
        {"d": [5], "t": [b"00:00:00.007"]},
        {"d": [], "t": [b"00:00:00.008"]},
    ]


@pytest.mark.parametrize("wrapped", [False, True])
def test_parquet_durations_of_several_units_are_not_mixed(ingest, tmp_path, wrapped):
    for name, values, unit in (("a", [1, 2], "s"), ("b", [1000], "ms"), ("c", [3], "s")):
        kind = pa.list_(pa.duration(unit)) if wrapped else pa.duration(unit)
        column = pa.array([[each] for each in values] if wrapped else values, kind)
        pq.write_table(pa.table({"d": column, "n": range(len(values))}), tmp_path / f"{name}.parquet")
    with pytest.raises(FileError) as caught:
        ingest(tmp_path / "*.parquet", format="parquet", **ALL)
    assert caught.value.message == (
        f"{tmp_path}/b.parquet: column 'd' holds durations in ms, but in s in {tmp_path}/a.parquet"
    )
    assert len(ingest(tmp_path / "*.parquet", format="parquet", columns=("n",), **ALL).rows) == 4
    assert len(ingest(tmp_path / "[ac].parquet", format="parquet", **ALL).rows) == 3


def test_units_of_durations_are_compared_over_tasks():
    first, second = Report(units={"d": ("s", "a.parquet")}), Report(units={"d": ("ms", "b.parquet")})
    first.add(Report.from_json(json.loads(json.dumps(Report(units={"d": ("s", "c.parquet")}).to_json()))))
    with pytest.raises(
        FileError, match=r"b\.parquet: column 'd' holds durations in ms, but in s in a\.parquet"
    ):
        first.add(Report.from_json(json.loads(json.dumps(second.to_json()))))


def test_parquet_column_without_a_name_is_refused(ingest, parquet):
    path = parquet({"a": pa.array([1]), "": pa.array([2])})
    with pytest.raises(FileError, match="column 2 has no name"):
        ingest(path, format="parquet")
    assert ingest(path, format="parquet", columns=("a",), **ALL).rows == [{"a": [1]}]


def test_parquet_page_with_a_wrong_checksum_is_refused(ingest, tmp_path):
    path = tmp_path / "in.parquet"
    numbers = pa.array(range(1000, 2000))
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(pa.table({"a": numbers}), path, **options)
    data = path.read_bytes()
    path.write_bytes(data.replace((1500).to_bytes(8, "little"), (1501).to_bytes(8, "little"), 1))
    with pytest.raises(FileError, match="is not a readable Parquet file"):
        ingest(path, format="parquet")
