"""What bad rows are called, and how many of them are too many."""

from collections import Counter

import pytest

from slipway.components.errors import ComponentError
from slipway.components.ingest.blocks import Place, Reject
from slipway.components.ingest.quarantine import BadRowsError, NoRowsError, Tally, check_tally, describe


def test_rows_without_a_label_are_left_out_and_counted_where_the_workload_says_so(ingest, write):
    text = "n,y\n" + "".join(f"{i},{'' if i % 4 == 0 else i % 3}\n" for i in range(40))
    kept = ingest(write(text), label="y")
    assert len(kept.rows) == 40
    found = ingest(write(text), label="y", unlabelled_rows="leave_out", max_bad_share=0.0)
    assert (len(found.rows), found.report.tally.unlabelled, found.rejects) == (30, 10, [])
    assert all(row["y"] for row in found.rows)
    assert Tally.from_json(found.report.tally.to_json()) == found.report.tally


def test_all_rows_accounted_for_and_few_bad_is_fine():
    check_tally(Tally(1000, {"train": 600, "eval": 399}, Counter({"x": 1})), max_bad_share=0.001)


def test_lost_row_is_never_accepted():
    with pytest.raises(ComponentError, match="10 rows read, but 8 written, 1 rejected and 0 left out"):
        check_tally(Tally(10, {"train": 8}, Counter({"x": 1})), max_bad_share=1)


def test_no_rows_at_all_are_refused():
    for file_format, hint in (("csv", "rows below its header"), ("parquet", "name files with rows")):
        with pytest.raises(ComponentError, match="it has no rows") as refused:
            check_tally(Tally(), max_bad_share=1, file_format=file_format)
        assert hint in refused.value.hint


def test_rows_without_a_label_that_are_all_left_out_are_told_as_that():
    with pytest.raises(NoRowsError, match="none of 12 rows has a label") as refused:
        check_tally(Tally(12, {}, Counter({"x": 1}), [], unlabelled=11), max_bad_share=1)
    assert "run again once they are there" in refused.value.hint
    check_tally(Tally(12, {"train": 1}, Counter(), [], unlabelled=11), max_bad_share=1)


def test_too_many_bad_rows_are_counted_by_reason():
    tally = Tally(10, {"train": 7}, Counter({"x": 1, "y": 2}), ["f line 3: y: raw"])
    with pytest.raises(BadRowsError) as caught:
        check_tally(tally, max_bad_share=0.2)
    assert caught.value.message == (
        "3 of 10 rows (30.00%) could not be read, more than data.max_bad_share (20.00%): 2 y, 1 x; "
        "first: f line 3: y: raw"
    )
    assert "for words such as n/a, data.null_values" in caught.value.hint


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("not a number", "name their form in data.numbers"),
        ("not a whole number", "let it be FLOAT in the schema"),
    ],
)
def test_column_that_is_written_otherwise_than_before_is_told_the_keys_for_that(reason, remedy):
    with pytest.raises(BadRowsError) as caught:
        check_tally(Tally(10, {}, Counter({reason: 10}), ["f line 3: x: raw"]), max_bad_share=0.2)
    assert remedy in caught.value.hint
    assert "raise" not in caught.value.hint, "of all rows none would be left"
    with pytest.raises(BadRowsError) as caught:
        check_tally(Tally(10, {"train": 5}, Counter({"x": 5}), ["f line 3: x: raw"]), max_bad_share=0.2)
    assert remedy not in caught.value.hint
    assert "or raise data.max_bad_share" in caught.value.hint


def test_one_bad_row_is_reported_in_the_singular():
    with pytest.raises(BadRowsError, match=r"^1 of 10 rows \(10.00%\) could not be read, more than"):
        check_tally(Tally(10, {"train": 9}, Counter({"x": 1}), ["f line 3: x: raw"]), max_bad_share=0)


def test_row_is_described_without_a_terminals_escapes():
    reject = Reject("broken", Place(3, 10, b"\x1b[31mred\xff" + b"x" * 100), "a", "why")
    assert describe("f.csv", reject).startswith("f.csv line 3, column a: broken (why): \\x1b[31mred\\xff")
    assert "\x1b" not in describe("f.csv", reject)
