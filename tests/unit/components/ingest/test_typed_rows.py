"""The rows of a block with the types of their columns: values, rejects, and the number of each row."""

import pyarrow as pa
import pytest

from slipway.components.ingest.blocks import Block, FileError, InputFile, Place, Reject
from slipway.components.ingest.column_notes import ROUNDED, TO_ZERO, ColumnNotes
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.options import Options
from slipway.components.ingest.typed_rows import (
    TOO_LARGE,
    GuessError,
    example_rows,
    row_numbers,
    typed_rows,
)

INT, FLOAT, TEXT = ColumnType.INT, ColumnType.FLOAT, ColumnType.TEXT


def block(*, rejects=(), offsets=None, **columns):
    """Cells of text, or arrays; rows lie 10 bytes apart unless offsets are named."""
    values = {name: each if isinstance(each, pa.Array) else pa.array(each) for name, each in columns.items()}
    rows = len(next(iter(values.values())))
    where = offsets or [10 * row for row in range(rows)]
    return Block(
        rows=rows,
        find=lambda row: Place(row + 1, where[row], b"raw"),
        columns=values,
        rejects=[Reject("broken", Place(None, offset, b"")) for offset in rejects],
        is_text=not any(isinstance(each, pa.Array) for each in columns.values()),
    )


def test_cells_become_values_of_their_type_and_a_column_that_is_not_there_has_none():
    typed, rejects = typed_rows(
        block(n=["1", ""], x=["0.5", "-2"], t=["a", ""], more=["9", "9"]),
        {"n": INT, "x": FLOAT, "t": TEXT, "absent": INT},
    )
    assert {name: values.to_pylist() for name, values in typed.items()} == {
        "n": [1, None], "x": [0.5, -2.0], "t": [b"a", None], "absent": [None, None]
    }  # fmt: skip
    assert rejects == {}


def test_row_is_rejected_for_its_first_wrong_value_with_its_column_and_place():
    _, rejects = typed_rows(
        block(n=["1", "one", "2", "two"], x=["a", "b", "1e39", "0"]), {"n": INT, "x": FLOAT}
    )
    assert {row: (each.reason, each.column, each.detail) for row, each in rejects.items()} == {
        0: ("not a number", "x", "'a'"),
        1: ("not a whole number", "n", "'one'"),
        2: (TOO_LARGE, "x", "'1e39'"),
        3: ("not a whole number", "n", "'two'"),
    }
    assert rejects[3].place == Place(4, 30, b"raw")


def test_list_with_one_number_too_large_rejects_its_row_alone():
    lists = pa.array([[1.0], [], [2.0, 1e39, 1e40], [3.0]], pa.large_list(pa.float64()))
    _, rejects = typed_rows(block(x=lists), {"x": FLOAT})
    assert {row: each.reason for row, each in rejects.items()} == {2: TOO_LARGE}


def test_whole_numbers_beyond_64_bits_are_called_so():
    _, rejects = typed_rows(block(n=pa.array([1, 2**63], pa.uint64())), {"n": INT})
    assert {row: each.reason for row, each in rejects.items()} == {1: "a whole number beyond 64 bits"}


def test_guess_that_a_cell_breaks_is_wrong_and_no_row_is_rejected_for_it():
    with pytest.raises(GuessError, match="n"):
        typed_rows(block(n=["1", "x"]), {"n": INT}, guessed={"n"})
    typed, rejects = typed_rows(block(n=["1", "2"]), {"n": INT}, guessed={"n"})
    assert (typed["n"].to_pylist(), rejects) == ([1, 2], {})


def test_numbers_that_32_bits_change_are_noted():
    notes = ColumnNotes()
    typed_rows(block(x=["16777217", "1e-60", "0.5"]), {"x": FLOAT}, notes=notes)
    assert set(notes.found["x"]) == {ROUNDED, TO_ZERO}


@pytest.mark.parametrize(
    ("rejects", "numbers", "rejected"),
    [
        ([], [5, 6, 7], []),
        ([5], [5, 7, 8], [6]),
        ([25, 1], [5, 7, 8], [6, 9]),
        ([-5, -4], [7, 8, 9], [5, 6]),
        ([15, 16, 17], [5, 6, 10], [7, 8, 9]),
    ],
)
def test_rejected_rows_are_counted_where_they_stood(rejects, numbers, rejected):
    found, apart = row_numbers(block(n=["1", "2", "3"], rejects=rejects), 5)
    assert found.tolist() == numbers
    assert [number for number, _ in apart] == rejected
    assert [each.place.offset for _, each in apart] == sorted(rejects)


def test_examples_have_the_numbers_of_their_rows_in_the_file(write):
    path = write("n,x\n1,2\nbroken\none,3\n4,5\n")
    file = InputFile(name="rows.csv", path=path)
    [found] = example_rows(file, Options(), {"n": INT, "x": FLOAT}, known={})
    assert found.rows.tolist() == [0, 3]
    assert [(number, each.column) for number, each in found.rejects] == [(1, None), (2, "n")]
    assert len(found.records) == 2


def test_durations_in_another_unit_than_in_training_are_refused(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"d": pa.array([1], pa.duration("s"))}), tmp_path / "a.parquet")
    file = InputFile(name="a.parquet", path=tmp_path / "a.parquet")
    asked = {"known": {}, "options": Options(format="parquet"), "columns": {"d": INT}}
    assert [each.rows.tolist() for each in example_rows(file, **asked, units={"d": "s"})] == [[0]]
    with pytest.raises(FileError, match=r"holds durations in s, and those .* trained on were in ms"):
        list(example_rows(file, **asked, units={"d": "ms"}))
