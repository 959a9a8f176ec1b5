"""A value comes out as it went in, or its row is in the quarantine, or it is said once of its column."""

import json
import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.errors import ComponentError
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.column_notes import ROUNDED, TO_ZERO, ColumnNotes
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.convert import Report
from slipway.components.ingest.options import Options
from slipway.components.ingest.suspect_numbers import Form
from slipway.components.ingest.tfrecord import frame

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
        "numbers; 1 whole number beyond 16,777,216 (as '16777217'), rounded to 32-bit fractions, so "
        "different values may become equal; to keep them as they are written, set data.types: {phone: text}"
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


def test_json_whole_numbers_beyond_64_bits_are_quarantined_however_long(ingest, write):
    lines = [
        '{"id": 1}', '{"id": 18446744073709551616}', '{"id": 1e30}', f'{{"id": [1, {10**30}]}}',
        '{"id": -9223372036854775809}', '{"id": %s}' % ("9" * 5000),
    ]  # fmt: skip
    found = ingest(write("\n".join(lines), "in.jsonl"), format="jsonl", **ALL)
    assert [row["id"] for row in found.rows] == [[1.0], [pytest.approx(1e30)]]
    assert [(r["line"], r["reason"]) for r in found.rejects] == [
        (2, "a whole number beyond 64 bits"),
        (4, "a whole number beyond 64 bits"),
        (5, "a whole number beyond 64 bits"),
        (6, "a number beyond 64 bits"),
    ]


def test_json_whole_numbers_beyond_64_bits_are_fractions_where_types_say_so(ingest, write):
    settings = {"types": {"x": "float"}, "max_bad_share": 1.0, **ALL}
    lines = [f'{{"x": {number}, "id": 1}}' for number in (2**63, f"[{2**64 - 1}, 3]", 10**30, 10**39, 7)]
    lines.append(f'{{"x": {10**30}, "id": {10**30}}}')
    found = ingest(write("\n".join(lines), "in.jsonl"), format="jsonl", **settings)
    assert [row["x"] for row in found.splits["all"]] == [
        [pytest.approx(2.0**63)], [pytest.approx(2.0**64), 3.0], [pytest.approx(1e30)], [7.0]
    ]  # fmt: skip
    assert sorted(reject["reason"] for reject in found.rejects) == [
        "a number beyond 32-bit fractions", "a whole number beyond 64 bits"
    ]  # fmt: skip


def test_json_objects_with_a_key_twice_are_quarantined_and_the_last_value_does_not_win(ingest, write):
    lines = [
        '{"id": 1, "at": "10:30:00"}', '{"id": 1, "at": "x", "id": 2}', '{"id": 3, "at": "\\"id\\": 4"}',
        '{"id": 5, "i\\u0064" :6}', '{"id": %s, "id": 7}' % ("[" * 1000 + "]" * 1000),
    ]  # fmt: skip
    found = ingest(write("\n".join(lines), "in.jsonl"), format="jsonl", **ALL)
    assert [row["id"] for row in found.rows] == [[1], [3]]
    assert [(r["line"], r["reason"], r["detail"]) for r in found.rejects] == [
        (2, "a key twice", "key 'id'"),
        (4, "a key twice", "key 'id'"),
        (5, "a key twice", "of nested values"),
    ]


def test_lists_with_a_missing_value_are_quarantined_and_not_shortened(ingest, write, tmp_path):
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
    found = ingest(_parquet(tmp_path, **columns), format="parquet", **ALL)
    assert found.rows == [{"n": [3], "l": [], "f": [1.0, 2.0]}]
    assert [(r["offset"], r["column"], r["reason"]) for r in found.rejects] == [
        (0, "f", "a missing value inside a list"),
        (1, "l", "a missing value inside a list"),
        (3, "l", "a missing value inside a list"),
    ]


def test_json_numbers_in_a_column_of_text_stay_as_they_are_written(ingest, write):
    lines = '\ufeff{"v": 1.50, "n": 1.0}\n{"v": "x"}\n{"v": [1.10, true, "y", -0]}\n{"v": 1E2}\n'
    found = ingest(write(lines, "in.jsonl"), format="jsonl", **ALL)
    assert [row["v"] for row in found.rows] == [[b"1.50"], [b"x"], [b"1.10", b"true", b"y", b"-0"], [b"1E2"]]
    assert found.rows[0]["n"] == [1.0]


def test_json_key_without_a_name_is_quarantined(ingest, write):
    found = ingest(write('{"a": 1}\n{"": 2}\n{" ": 3}\n', "in.jsonl"), format="jsonl", **ALL)
    assert found.rows == [{"a": [1]}]
    assert found.reasons == ["a key without a name"] * 2


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('[\n{"a": 1},\n{"a": 2}\n]\n', "holds one JSON array", "jq -c '.[]' "),
        ('[{"a": 1}, {"a": 2}]\n', "holds one JSON array", "jq -c '.[]' "),
        ('{\n "a": 1\n}\n', "holds JSON objects over several lines each", "jq -c . "),
        (
            '{"a": {"b": 1}}\n' * 2,
            "holds no object that can be read as a row; the first: ",
            "its own key",
        ),
        ('{"a": %s}\n' % 2**64, "line 1: a whole number beyond 64 bits (key 'a')", "correct these lines"),
    ],
)
def test_json_that_is_no_json_lines_is_called_what_it_is(ingest, write, text, message, hint):
    with pytest.raises(FileError) as caught:
        ingest(write(text, "in.jsonl"), format="jsonl")
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("broken", ["{", '[{"a": 1}]', '[{"a": 1,'])
def test_broken_first_line_above_objects_goes_to_the_quarantine(ingest, write, broken):
    found = ingest(write("\n".join([broken, '{"a": 1}', '{"a": 2}', ""]), "in.jsonl"), format="jsonl", **ALL)
    assert (len(found.rows), [reject["line"] for reject in found.rejects]) == (2, [1])


# Parquet.


def test_parquet_decimals_without_decimals_are_whole_numbers(ingest, tmp_path):
    ids = [Decimal(2**53 + 1), Decimal(2**63), None, Decimal(-(2**63))]
    columns = {
        "id": pa.array(ids, pa.decimal128(38, 0)),
        "u": pa.array([1, 2, 2**64 - 1, 3], pa.uint64()),
        "price": pa.array([Decimal("1.10"), None, None, None]),
    }
    path = _parquet(tmp_path, **columns)
    found = ingest(path, format="parquet", **ALL)
    assert [(row["id"], row["u"]) for row in found.rows] == [([2**53 + 1], [1]), ([-(2**63)], [3])]
    assert [(r["offset"], r["column"], r["reason"], r["detail"]) for r in found.rejects] == [
        (1, "id", "a whole number beyond 64 bits", "'9223372036854775808'"),
        (2, "u", "a whole number beyond 64 bits", "'18446744073709551615'"),
    ]
    as_text = ingest(path, format="parquet", types={"id": "text", "u": "text", "price": "text"}, **ALL)
    assert as_text.rows[0] == {"id": [b"9007199254740993"], "u": [b"1"], "price": [b"1.10"]}
    assert as_text.rejects == []


def test_parquet_durations_are_numbers_of_their_unit(ingest, tmp_path):
    path = _parquet(tmp_path, d=pa.array([5, None], pa.duration("ms")), t=pa.array([7, 8], pa.time32("ms")))
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


def test_parquet_column_without_a_name_is_refused(ingest, tmp_path):
    path = _parquet(tmp_path, **{"a": pa.array([1]), "": pa.array([2])})
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


# TFRecord.


def _message(*fields):
    return b"".join(bytes([number << 3 | 2, len(data)]) + data for number, data in fields)


def test_messages_that_are_no_examples_are_quarantined(ingest, write):
    feature = _message((1, b"n"), (2, _message((3, b"\x0a\x01\x05"))))
    example = _message((1, _message((1, feature))))
    pair = _message((1, _message((3, b"\x0a\x02\x05\x06"))))
    sequence = example + _message((2, _message((1, _message((1, b"x"), (2, pair))))))
    inside = _message((1, _message((1, feature), (7, b"more"))))
    other = _message((4, b"a name"), (5, b"an address"))
    path = write(frame([example, sequence, inside, other]), "in.tfrecord")
    found = ingest(path, format="tfrecord", **ALL)
    assert found.rows == [{"n": [5]}]
    assert [(r["reason"], "it has other fields" in r["detail"]) for r in found.rejects] == [
        ("not a tf.Example", False),
        ("not a tf.Example", True),
        ("not a tf.Example", True),
    ]
    assert found.rejects[0]["detail"].endswith("a step of 'x' has 2 values; only one each can be read")
