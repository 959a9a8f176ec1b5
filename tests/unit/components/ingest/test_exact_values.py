"""A value comes out as it went in, or its row is in the quarantine, or it is said once of its column."""

import math

import pyarrow as pa
import pytest

from slipway.components.errors import ComponentError
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.options import Options

ALL = {"split": {"all": 1}}


# 32 bits.


def test_fractions_beyond_32_bits_are_quarantined_and_not_infinite(ingest, write):
    cells = ["1e400", "1.5", "1e39", "-3.5e38", "inf", "-Infinity", "3.4028234e38"]
    found = ingest(write("a,x\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))), **ALL)
    assert [(r["line"], r["column"], r["reason"], r["detail"]) for r in found.rejects] == [
        (2, "x", "a number beyond 32-bit fractions", "'1e400'"),
        (4, "x", "a number beyond 32-bit fractions", "'1e39'"),
        (5, "x", "a number beyond 32-bit fractions", "'-3.5e38'"),
    ]
    # What is written as infinite is.
    assert [row["x"][0] for row in found.rows][1:3] == [math.inf, -math.inf]


def test_fractions_of_json_and_parquet_beyond_32_bits_are_quarantined(ingest, write, parquet):
    path = write('{"x": 1.5}\n{"x": [2.5, 1e39]}\n{"x": []}\n{"x": 1e300}\n', "in.jsonl")
    found = ingest(path, format="jsonl", **ALL)
    assert [row["x"] for row in found.rows] == [[1.5], []]
    assert [(r["line"], r["reason"]) for r in found.rejects] == [
        (2, "a number beyond 32-bit fractions"),
        (4, "a number beyond 32-bit fractions"),
    ]
    columns = {"x": pa.array([1e300, None, 2.5]), "l": pa.array([[1.0], [], [0.5, -1e39]])}
    found = ingest(parquet(columns), format="parquet", **ALL)
    assert [(r["offset"], r["column"]) for r in found.rejects] == [(0, "x"), (2, "l")]
    assert found.rows == [{"x": [], "l": []}]


# Texts that Python takes for numbers.


# Types that the workload gives.


def test_column_that_the_workload_calls_text_keeps_what_is_written(ingest, write, tmp_path):
    found = ingest(write("v,n\n1.10,1\n1.2,2\n"), types={"v": "text"}, **ALL)
    assert [row["v"] for row in found.rows] == [[b"1.10"], [b"1.2"]]
    assert found.notes == {}


def test_type_of_the_workload_is_over_the_schemas_and_cells_that_break_it_are_quarantined():
    options = Options(types={"a": "float", "b": "int"})
    known = options.known({"a": ColumnType.TEXT, "c": ColumnType.INT})
    assert known == {"a": ColumnType.FLOAT, "b": ColumnType.INT, "c": ColumnType.INT}
    assert Options.from_json(options.to_json()) == options


def test_type_of_a_column_that_is_not_there_is_refused(ingest, write):
    with pytest.raises(
        ComponentError, match=r"no column is named 'fone', of which data\.types gives the type"
    ) as caught:
        ingest(write("phone\n1\n"), types={"fone": "text"}, **ALL)
    assert caught.value.hint == "there are phone"


@pytest.mark.parametrize(
    "settings", [{"numbers": {"prize": {"unit": "$"}}}, {"dates": {"prize": "%d.%m.%Y"}}]
)
def test_notation_of_a_column_that_is_not_there_is_refused_with_the_nearest(ingest, write, settings):
    with pytest.raises(
        ComponentError, match=r"no column is named 'prize', of which data\.(numbers|dates) gives the notation"
    ) as caught:
        ingest(write("day,price\n1,2\n"), **settings, **ALL)
    assert caught.value.hint == "there are price, day"


def test_notation_of_a_column_that_is_left_out_says_where_it_stands(ingest, write):
    with pytest.raises(ComponentError, match="no column is named 'price'") as caught:
        ingest(write("day,price\n1,2\n"), columns=("day",), numbers={"price": {}}, label="day", **ALL)
    assert caught.value.hint == "there are day; if data.columns leaves it out, remove it from data.numbers"


# JSON Lines.


def test_lists_with_a_missing_value_are_quarantined_and_not_shortened(ingest, write, parquet):
    path = write('{"l": [1, 2]}\n{"l": [1, null, 3]}\n{"l": null}\n{"l": []}\n', "in.jsonl")
    found = ingest(path, format="jsonl", **ALL)
    assert [row["l"] for row in found.rows] == [[1, 2], [], []]
    assert [(r["line"], r["column"], r["reason"], r["detail"]) for r in found.rejects] == [
        (2, "l", "a missing value inside a list", "[1, None, 3]")
    ]
    columns = {
        "n": pa.array([1, 2, 3, 4]),
        "l": pa.array([[1, 2], [1, None, 3], None, [None]]),
        "f": pa.array([[1.0, None], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]], pa.list_(pa.float32(), 2)),
    }
    found = ingest(parquet(columns), format="parquet", **ALL)
    assert found.rows == [{"n": [3], "l": [], "f": [1.0, 2.0]}]
    assert [(r["offset"], r["column"], r["reason"]) for r in found.rejects] == [
        (0, "f", "a missing value inside a list"),
        (1, "l", "a missing value inside a list"),
        (3, "l", "a missing value inside a list"),
    ]


# Parquet.


# TFRecord.
