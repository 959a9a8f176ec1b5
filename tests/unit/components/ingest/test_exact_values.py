"""A value comes out as it went in, or its row is in the quarantine, or it is said once of its column."""

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.errors import ComponentError
from components.ingest.column_notes import ROUNDED, TO_ZERO, ColumnNotes
from components.ingest.column_types import ColumnType
from components.ingest.number_forms import Form
from components.ingest.options import Options

ALL = {"split": {"all": 1}}


def _notes(found):
    return {
        column: {what: count for what, (count, _) in kinds.items()}
        for column, kinds in found.report.tally.notes.found.items()
    }


def _parquet(tmp_path, **columns):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(columns), path)
    return path


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


def test_fractions_of_json_and_parquet_beyond_32_bits_are_quarantined(ingest, write, tmp_path):
    path = write('{"x": 1.5}\n{"x": [2.5, 1e39]}\n{"x": []}\n{"x": 1e300}\n', "in.jsonl")
    found = ingest(path, format="jsonl", **ALL)
    assert [row["x"] for row in found.rows] == [[1.5], []]
    assert [(r["line"], r["reason"]) for r in found.rejects] == [
        (2, "a number beyond 32-bit fractions"),
        (4, "a number beyond 32-bit fractions"),
    ]
    columns = {"x": pa.array([1e300, None, 2.5]), "l": pa.array([[1.0], [], [0.5, -1e39]])}
    found = ingest(_parquet(tmp_path, **columns), format="parquet", **ALL)
    assert [(r["offset"], r["column"]) for r in found.rejects] == [(0, "x"), (2, "l")]
    assert found.rows == [{"x": [], "l": []}]


def test_fractions_that_become_zero_are_counted(ingest, write):
    cells = ["1e-400", "1e-46", "-1e-50", "0.0", "0e-5", "", "1e-44", "0." + "0" * 400 + "1"]
    found = ingest(write("a,x\n" + "".join(f"1,{cell}\n" for cell in cells)), **ALL)
    assert len(found.rows) == len(cells)
    assert _notes(found) == {"x": {TO_ZERO: 4}}


def test_whole_numbers_that_32_bit_fractions_round_are_counted(ingest, write, tmp_path):
    cells = ["16777216", "16777217", "9007199254740993", "9007199254740992", "33554436", "20000000.5", "1.5"]
    found = ingest(write("id\n" + "".join(f"{cell}\n" for cell in cells)), **ALL)
    assert _notes(found) == {"id": {ROUNDED: 2}}
    lines = '{"id": 16777217}\n{"id": 1.5}\n{"id": 4}\n'
    assert _notes(ingest(write(lines, "in.jsonl"), format="jsonl", **ALL)) == {"id": {ROUNDED: 1}}
    found = ingest(
        _parquet(tmp_path, id=pa.array([16777217.0, 1e30, None, 20000000.5])), format="parquet", **ALL
    )
    assert _notes(found)["id"] == {ROUNDED: 1}


def test_whole_numbers_in_one_file_and_fractions_in_another_are_counted_beyond_53_bits(ingest, tmp_path):
    for name, column in (("1", pa.array([2**53 + 1, 2**62])), ("2", pa.array([0.5]))):
        pq.write_table(pa.table({"id": column}), tmp_path / f"{name}.parquet")
    assert _notes(ingest(tmp_path / "*.parquet", format="parquet", **ALL)) == {"id": {ROUNDED: 1}}


# Texts that Python takes for numbers.


@pytest.mark.parametrize(
    ("cells", "form", "count"),
    [
        (["+4915112345678", "+1", "5"], Form.PLUS, 2),
        (["+4915.5", "-1", "5"], Form.PLUS, 1),
        (["1_000", "2"], Form.UNDERSCORE, 1),
        ([" 5", "6\t", "7"], Form.SPACES, 2),
        (["12E4", "3e5", "1.5e3", "1e-05", "1e+16"], Form.EXPONENT, 2),
        (["00.5", "01.02", "-02.5", "0.5", "0"], Form.ZEROS, 3),
        (["1.10", "1.2", "1.20", "2"], Form.TRAILING, 2),
    ],
)
def test_numbers_that_may_be_none_are_read_as_numbers_and_counted(ingest, write, cells, form, count):
    found = ingest(write("a,c\n" + "".join(f"1,{cell}\n" for cell in cells)), **ALL)
    assert [row["c"] for row in found.rows] == [pytest.approx([float(cell)]) for cell in cells]
    assert _notes(found) == {"c": {form: count}}


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "-2", "0"],
        ["1.5", "2.25", "0.0", "10", "1e-05", "1.5E10", "1e+16", "nan", "-inf", ""],
        ["12.50", "3.00", "0.10", "12"],  # all of two digits
        ["5.0", "12.45", "0.5"],  # as Python writes them
        ["007", "8"],  # text anyway
        ["+5", "x"],
    ],
)
def test_of_plain_numbers_and_of_text_nothing_is_said(ingest, write, cells):
    found = ingest(write("a,c\n" + "".join(f"1,{cell}\n" for cell in cells)), **ALL)
    assert _notes(found) == {}


def test_of_a_column_that_the_schema_types_only_what_is_lost_is_said(ingest, write):
    known = {"c": ColumnType.FLOAT}
    found = ingest(write("a,c\n1,+5\n1,1e-46\n"), known=known, **ALL)
    assert _notes(found) == {"c": {TO_ZERO: 1}}


def test_notes_of_blocks_and_files_are_one_sentence_a_column(ingest, write):
    write("phone\n" + "+49151\n" * 1000, "1.csv")
    path = write("phone\n" + "+1\n5 \n16777217.0\n0.5\n16777217\n", "2.csv")
    found = ingest(path.parent / "*.csv", block_bytes=500, **ALL)
    notes = ColumnNotes.from_json(json.loads(json.dumps(found.report.tally.to_json()["read_otherwise"])))
    assert notes.sentences() == {
        "phone": "1,001 values with + in front (as '+49151'), 1 value with spaces around (as '5 '), read as "
        "numbers; 1 whole number beyond 16,777,216 (as '16777217'), rounded to 32-bit fractions, so that "
        "different ones may become equal; to keep them as they are written, set data.types: {phone: text}"
    }


# Types that the workload gives.


def test_column_that_the_workload_calls_text_keeps_what_is_written(ingest, write, tmp_path):
    found = ingest(write("v,n\n1.10,1\n1.2,2\n"), types={"v": "text"}, **ALL)
    assert [row["v"] for row in found.rows] == [[b"1.10"], [b"1.2"]]
    assert _notes(found) == {}


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
