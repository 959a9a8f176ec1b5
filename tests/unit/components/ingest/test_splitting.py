"""Which split a row belongs to: rule by rule, and what comes of it in whole files."""

import hashlib
import math
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.components.errors import ComponentError
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.options import Options
from slipway.components.ingest.splitting import NO_SPLIT, SplitRows, buckets, split_rule

COLUMNS = {"user": ColumnType.TEXT, "n": ColumnType.INT, "x": ColumnType.FLOAT}


def assigned(values, *, split_by, part="", split=("train", "eval")):
    """The splits of rows with those values in the column that decides."""
    count = 0 if values is None else len(values)
    rows = SplitRows([b""] * count, values, "a.csv", np.arange(count), part)
    options = Options(split=dict.fromkeys(split, 1), split_by=split_by)
    return split_rule(options, COLUMNS).assign(rows).tolist()


def after(start):
    return {"time": "n", "starts": {"train": None, "eval": start}}


@pytest.mark.parametrize(("part", "split"), [("validation", 1), ("training", 0), ("test", NO_SPLIT)])
def test_part_of_a_file_is_the_split_that_is_named_for_it(part, split):
    by = {"parts": {"eval": "validation", "train": "training"}}
    assert assigned(pa.array([1, 2]), split_by=by, part=part) == [split, split]


def test_row_without_a_time_belongs_to_no_split():
    assert assigned(pa.array([1, None, 5, 6]), split_by=after(5)) == [0, NO_SPLIT, 1, 1]


def test_whole_numbers_are_held_against_a_start_between_them():
    assert assigned(pa.array([1, 2]), split_by=after(1.5)) == [0, 1]
    assert assigned(pa.array([0.5, 1.0]), split_by=after(1)) == [0, 1]


@pytest.mark.parametrize("by", [after(5), {"key": "n"}])
def test_of_a_list_the_first_value_decides(by):
    lists = pa.array([[9, 1], [], None, [2], [], [5, 7]], pa.large_list(pa.int64()))
    firsts = pa.array([9, None, None, 2, None, 5])
    assert assigned(lists, split_by=by) == assigned(firsts, split_by=by)
    assert assigned(lists[1:4], split_by=by) == assigned(firsts[1:4], split_by=by)
    assert assigned(lists[:0], split_by=by) == []


def test_rows_of_one_key_and_those_without_any_fall_into_one_split_each():
    found = assigned(
        pa.array([7, None, 8, 7, None]), split_by={"key": "n"}, split=[f"s{i}" for i in range(9)]
    )
    assert found[0] == found[3]
    assert found[1] == found[4]


@pytest.mark.parametrize("values", [pa.nulls(2), pa.array([[], None], pa.large_list(pa.null()))])
def test_rows_of_a_column_without_any_value_fall_into_one_split(values):
    options = Options(split={f"s{i}": 1 for i in range(9)}, split_by={"key": "n"})
    rule = split_rule(options, {"n": ColumnType.UNKNOWN})
    rows = SplitRows([b"a", b"b"], values, "file", np.arange(2), "")
    first, second = rule.assign(rows).tolist()
    assert first == second


def test_ids_that_a_program_wrote_as_fractions_are_the_same_keys_as_whole_numbers():
    whole, fractions = pa.array(range(50), pa.int64()), pa.array([float(n) for n in range(50)])
    assert assigned(fractions, split_by={"key": "x"}) == assigned(whole, split_by={"key": "n"})
    first, _ = assigned(pa.array([7.0, None]), split_by={"key": "x"})
    assert [first] == assigned(pa.array([7]), split_by={"key": "n"})
    with pytest.raises(
        ComponentError, match=r"row 3 of a\.csv has 1\.5 in column 'x', a fraction\nhint: use"
    ):
        assigned(pa.array([1.0, None, 1.5]), split_by={"key": "x"})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1e30, "1e+30 in column 'x', a number beyond 64 bits"),
        (2.0**63, "9.223372036854776e+18 in column 'x', a number beyond 64 bits"),
        (math.inf, "inf in column 'x', which is no number that rows can share"),
    ],
)
def test_numbers_that_are_no_keys_are_refused_with_what_they_are(value, words):
    with pytest.raises(ComponentError, match=re.escape(f"data.split_by.key: row 3 of a.csv has {words}")):
        assigned(pa.array([1.0, None, value]), split_by={"key": "x"})


def test_not_a_number_is_no_key_as_nothing_is():
    """As `new` takes it, which splits by such a column."""
    split = [f"s{i}" for i in range(9)]
    without, nan, seven = assigned(pa.array([None, math.nan, 7.0]), split_by={"key": "x"}, split=split)
    assert nan == without
    assert [seven] == assigned(pa.array([7]), split_by={"key": "n"}, split=split)


def test_the_greatest_whole_numbers_are_keys():
    assigned(pa.array([-(2.0**63), 2.0**62, 1e16]), split_by={"key": "x"})


@pytest.mark.parametrize(
    ("split_by", "words"),
    [
        (
            {"key": "gone"},
            "data.split_by.key names the column 'gone', which is not there\nhint: there are user, n, x",
        ),
        (
            {"time": "gone", "starts": {}},
            "data.split_by.time names the column 'gone', which is not there\nhint: there are user, n, x",
        ),
        (
            {"time": "n", "starts": {"train": None, "eval": "2024"}},
            "data.split_by.starts: '2024' cannot be compared with 'n', which holds numbers",
        ),
        (
            {"time": "user", "starts": {"train": None, "eval": 5}},
            "data.split_by.starts: 5 cannot be compared with 'user', which holds text",
        ),
        ({"key": "n"}, "data.split_by needs a column, and these files have none\nhint: remove data.split_by"),
    ],
)
def test_rule_that_cannot_decide_is_refused_in_words(split_by, words):
    with pytest.raises(ComponentError) as error:
        assigned(None, split_by=split_by)
    assert str(error.value) == words


def test_of_many_columns_twenty_are_named():
    columns = {f"c{i}": ColumnType.INT for i in range(21)}
    with pytest.raises(ComponentError) as error:
        split_rule(Options(split_by={"key": "gone"}), columns)
    assert error.value.hint == f"there are {', '.join(list(columns)[:20])}"


def test_times_as_text_are_in_the_order_of_the_text_whatever_that_of_the_splits():
    starts = {"test": "2026-03", "train": None, "eval": "2026-02"}
    days = pa.array([b"2025-12-31", b"2026-02-01", b"2026-03-01"], pa.large_binary())
    by = {"time": "user", "starts": starts}
    assert assigned(days, split_by=by, split=("train", "eval", "test")) == [0, 1, 2]


@pytest.mark.parametrize("start", ["20.01.2024", "1/20/2024", "20-1-2024 10:00"])
def test_start_that_ends_with_the_year_is_refused(start):
    """Rows would be split by the day of their month."""
    by = {"time": "user", "starts": {"train": None, "eval": start}}
    with pytest.raises(ComponentError, match=f"{start} ends with the year") as refused:
        split_rule(Options(split={"train": 1, "eval": 1}, split_by=by), COLUMNS)
    assert "data.dates" in refused.value.hint


def test_number_that_is_none_is_no_time():
    values = pa.array([1.0, math.nan, None, 7.0])
    rule = split_rule(Options(split={"train": 1, "eval": 1}, split_by={**after(5), "time": "x"}), COLUMNS)
    assert {why: rows.tolist() for why, rows in rule.unfit(values).items()} == {
        "no value to split by": [False, True, True, False]
    }


@pytest.mark.parametrize(
    ("start", "fitting", "others"),
    [
        ("2024-01-20", ["2024-01-19", "2024-01-20T10:00Z", "2024-01-20 10:00", "2024-01", "2024"],
         ["2024-1-5", "2024-10-5", "3/4/2021", "31.12.2023", "2024/01/05", "20240105", "unknown", ""]),
        ("2024-01-20T10:00", ["2024-01-20T09:00:00+02:00", "2024-01-20"],
         ["2024-01-20 10:00", "2024-01-20T9"]),
        ("2024-01-20T10:00:00.500", ["2024-01-20T10:00:00.25", "2024-01-20T10:00"], ["2024-01-20T10:00:0"]),
        ("20240120", ["20240119", "202401"], ["2024-01-20"]),
        ("2024-W05", ["2024-W06"], ["2024-01-20"]),
        ("2024-1-5", ["2024-1-3", "2024-1-5T10:00", "2024-1"], ["2024-1-20", "2024-10-5", "2024-12-20"]),
    ],
)  # fmt: skip
def test_text_of_another_form_than_the_start_s_cannot_be_compared_with_it(start, fitting, others):
    by = {"time": "user", "starts": {"train": None, "eval": start}}
    rule = split_rule(Options(split={"train": 1, "eval": 1}, split_by=by), COLUMNS)
    texts = pa.array([text.encode() for text in [*fitting, *others]], pa.large_binary())
    found = rule.unfit(texts)[f"not a time like {start}"]
    assert found.tolist() == [False] * len(fitting) + [True] * len(others)
    lists = pa.array([[b"2024-01-01"], [], None, [others[0].encode()]], pa.large_list(pa.large_binary()))
    is_odd = not "2024-01-01".startswith(start[:6])
    assert rule.unfit(lists)[f"not a time like {start}"].tolist() == [is_odd, False, False, True]


@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1), st.integers(1, 2**31))
def test_bucket_is_the_hash_as_a_number_modulo_the_total(records, total):
    digests = [hashlib.sha256(record).digest() for record in records]
    expected = [int.from_bytes(digest, "big") % total for digest in digests]
    assert buckets(digests, total).tolist() == expected


def test_rows_stay_in_their_splits_from_version_to_version(ingest, write):
    found = ingest(write("a\n" + "".join(f"{i}\n" for i in range(12))), split={"train": 2, "eval": 1})
    assert [row["a"][0] for row in found.splits["eval"]] == SPLIT_OF_TWELVE


# By TFX's rule: sha256 of each serialised Example modulo 3 is 2.
SPLIT_OF_TWELVE = [
    i
    for i in range(12)
    if int(hashlib.sha256(b"\n\x0c\n\n\n\x01a\x12\x05\x1a\x03\n\x01" + bytes([i])).hexdigest(), 16) % 3 == 2
]


def test_a_user_is_in_one_split_only(ingest, write):
    text = "user,n\n" + "".join(f"u{i % 20},{i}\n" for i in range(400)) + ",1\n,2\n"
    found = ingest(write(text), split_by={"key": "user"}, split={"train": 1, "eval": 1})
    users = [{tuple(row["user"]) for row in rows} for rows in found.splits.values()]
    assert users[0]
    assert users[1]
    assert not users[0] & users[1]
    assert len(found.rows) == 402


@pytest.mark.parametrize(
    ("starts", "expected"),
    [({"train": None, "eval": 5}, (5, 4)), ({"eval": 8, "train": None, "test": 3}, (3, 1, 5))],
)
def test_each_split_begins_at_its_time(ingest, write, starts, expected):
    text = "t\n" + "".join(f"{i}\n" for i in range(9))
    found = ingest(write(text + '""\n'), split_by={"time": "t", "starts": starts})
    sizes = [len(found.splits[name]) for name in ("train", "eval", "test") if name in starts]
    assert sizes == list(expected)
    assert found.reasons == ["no value to split by"]


COARSE = "sex,age\n" + "f,30\nm,30\nf,9\n" * 200


def test_equal_rows_are_dealt_to_the_splits_as_others_are_where_the_place_decides(ingest, write):
    by_content = ingest(write(COARSE))
    assert {len(rows) % 200 for rows in by_content.splits.values()} == {0}
    by_place = ingest(write(COARSE), split_by={"row": True})
    assert len(by_place.splits["train"]) == pytest.approx(400, abs=40)
    assert {tuple(row["sex"]) for row in by_place.splits["eval"]} == {(b"f",), (b"m",)}


def test_a_place_is_the_file_s_name_and_the_row_s_number_in_it(ingest, tmp_path):
    def ages(folder, text):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "people.csv").write_text(text, encoding="utf-8")
        found = ingest(tmp_path / folder / "people.csv", split_by={"row": True}, max_bad_share=1.0)
        return {name: [row["n"][0] for row in rows] for name, rows in found.splits.items()}

    rows = [f"{n}" for n in range(12)]
    digests = [hashlib.sha256(f"people.csv:{n}".encode()).digest() for n in range(12)]
    expected = [n for n, digest in enumerate(digests) if int.from_bytes(digest, "big") % 3 == 2]
    first = ages("a", "\n".join(["n", *rows]) + "\n")
    assert first["eval"] == expected
    appended = ages("b", "\n".join(["n", *rows, "12", "13"]) + "\n")
    assert [n for n in appended["eval"] if n < 12] == expected
    # A row that cannot be read keeps its number: mending it moves no other.
    broken = ages("c", "\n".join(["n", *rows[:5], "5,x", *rows[6:]]) + "\n")
    assert broken["eval"] == [n for n in expected if n != 5]


def test_a_column_that_decides_over_the_split_need_be_no_feature(ingest, write):
    text = "id,n\n" + "".join(f"u{i % 20},{i % 2}\n" for i in range(400))
    found = ingest(write(text), columns=("n",), split_by={"key": "id"})
    assert {tuple(row) for row in found.rows} == {("n",)}
    whole = ingest(write(text), split_by={"key": "id"})
    sizes = [{name: len(rows) for name, rows in each.splits.items()} for each in (found, whole)]
    assert sizes[0] == sizes[1]
    starts = {"train": None, "eval": "u15"}
    in_time = ingest(write(text), columns=("n",), split_by={"time": "id", "starts": starts})
    assert {tuple(row) for row in in_time.rows} == {("n",)}


@pytest.mark.parametrize(
    ("split_by", "message"),
    [
        ({"key": "b"}, "names the column 'b', which is not there"),
        ({"key": "x"}, r"row 1 of in\.csv has 1\.5 in column 'x', a fraction"),
        ({"time": "a", "starts": {"train": None, "eval": "2024"}}, "'2024' cannot be compared with 'a'"),
    ],
)
def test_column_that_cannot_decide_is_refused(ingest, write, split_by, message):
    with pytest.raises(ComponentError, match=message):
        ingest(write("a,x\n1,1.5\n"), split_by=split_by)


def test_row_whose_time_is_of_another_form_is_in_no_split(ingest, write):
    days = ["2024-01-05", "2024-02-05", "2024-1-5", "3/4/2021", "unknown"]
    text = "day,n\n" + "".join(f"{day},{n}\n" for n, day in enumerate(days))
    starts = {"train": None, "eval": "2024-01-20"}
    found = ingest(write(text), split_by={"time": "day", "starts": starts})
    assert {split: [row["n"] for row in rows] for split, rows in found.splits.items()} == {
        "train": [[0]],
        "eval": [[1]],
    }
    assert [(each["reason"], each["column"], each["line"]) for each in found.rejects] == [
        ("not a time like 2024-01-20", "day", line) for line in (4, 5, 6)
    ]


def test_number_that_is_none_is_neither_a_time_nor_a_label(ingest, write):
    text = "t,y\n1.5,0.5\nnan,0.5\n7.5,nan\n8.5,1.5\n"
    found = ingest(
        write(text),
        split_by={"time": "t", "starts": {"train": None, "eval": 5}},
        label="y",
        unlabelled_rows="leave_out",
    )
    assert {split: [row["t"] for row in rows] for split, rows in found.splits.items()} == {
        "train": [[1.5]],
        "eval": [[8.5]],
    }
    assert (found.reasons, found.report.tally.unlabelled) == (["no value to split by"], 1)


def test_empty_list_is_no_label(ingest, write):
    lines = '{"n": 1, "y": [1]}\n{"n": 2, "y": null}\n{"n": 3}\n{"n": 4, "y": []}\n{"n": 5, "y": 0}\n'
    found = ingest(write(lines, "in.jsonl"), format="jsonl", label="y", unlabelled_rows="leave_out")
    assert sorted(row["n"] for row in found.rows) == [[1], [5]]
    assert found.report.tally.unlabelled == 3
