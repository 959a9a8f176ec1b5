"""What the values of a column lose on their way to 32-bit numbers, counted."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

from slipway.components.ingest.column_notes import ROUNDED, TO_ZERO, ColumnNotes

ALL = {"split": {"all": 1}}


def test_fractions_that_become_zero_are_counted(ingest, write):
    cells = ["1e-400", "1e-46", "-1e-50", "0.0", "0e-5", "", "1e-44", "0." + "0" * 400 + "1"]
    found = ingest(write("a,x\n" + "".join(f"1,{cell}\n" for cell in cells)), **ALL)
    assert len(found.rows) == len(cells)
    assert found.notes == {"x": {TO_ZERO: 4}}
    lines = "".join(f'{{"a": 1, "x": {cell or "null"}}}\n' for cell in cells)
    found = ingest(write(lines, "in.jsonl"), format="jsonl", **ALL)
    assert found.notes == {"x": {TO_ZERO: 4}}
    assert sorted({row["x"][0] for row in found.rows if row["x"]})[0] == 0
    beside = write(f'{{"a": 7, "x": 0.5}}\n{{"a": {10**30}, "x": 1e-400}}\n', "in.jsonl")
    assert ingest(beside, format="jsonl", types={"a": "float"}, **ALL).notes["x"] == {TO_ZERO: 1}


def test_whole_numbers_that_32_bit_fractions_round_are_counted(ingest, write, parquet):
    cells = ["16777216", "16777217", "9007199254740993", "9007199254740992", "33554436", "20000000.5", "1.5"]
    found = ingest(write("id\n" + "".join(f"{cell}\n" for cell in cells)), **ALL)
    assert found.notes == {"id": {ROUNDED: 2}}
    lines = '{"id": 16777217}\n{"id": 1.5}\n{"id": 4}\n'
    assert ingest(write(lines, "in.jsonl"), format="jsonl", **ALL).notes == {"id": {ROUNDED: 1}}
    found = ingest(parquet({"id": pa.array([16777217.0, 1e30, None, 20000000.5])}), format="parquet", **ALL)
    assert found.notes["id"] == {ROUNDED: 1}


def test_whole_numbers_in_one_file_and_fractions_in_another_are_counted_beyond_53_bits(ingest, tmp_path):
    for name, column in (("1", pa.array([2**53 + 1, 2**62])), ("2", pa.array([0.5]))):
        pq.write_table(pa.table({"id": column}), tmp_path / f"{name}.parquet")
    assert ingest(tmp_path / "*.parquet", format="parquet", **ALL).notes == {"id": {ROUNDED: 1}}


def test_notes_of_blocks_and_files_are_one_sentence_a_column(ingest, write):
    write("phone\n" + "+49151\n" * 1000, "1.csv")
    path = write("phone\n" + "+1\n5 \n16777217.0\n0.5\n16777217\n", "2.csv")
    found = ingest(path.parent / "*.csv", block_bytes=500, **ALL)
    notes = ColumnNotes.from_json(json.loads(json.dumps(found.report.tally.to_json()["read_otherwise"])))
    assert notes.sentences() == {
        "phone": "1,001 values with + in front (as '+49151'), 1 value with spaces around (as '5 '), read as "
        "numbers; 1 whole number beyond 16,777,216 (as '16777217'), rounded to 32-bit fractions, so "
        "different values may become equal; to keep them as they are written, set data.types: {phone: text}"
    }
