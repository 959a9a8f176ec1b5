"""The small rules: splits, encoding, framing, tasks and shards, and the verdict over all rows."""

import hashlib
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.components.errors import ComponentError
from slipway.components.ingest import example_encoding
from slipway.components.ingest.blocks import Place, Reject
from slipway.components.ingest.column_types import (
    ColumnType,
    as_type,
    infer_type,
    merge,
    parse,
    parse_guessed,
)
from slipway.components.ingest.example_encoding import ExampleEncoder, varint, varints
from slipway.components.ingest.example_message import parse_example
from slipway.components.ingest.options import Options
from slipway.components.ingest.planning import (
    LEAST_SHARD_BYTES,
    LEAST_TASK_BYTES,
    MANY_TASKS,
    MOST_SHARD_BYTES,
    TASK_BYTES,
    final_names,
    plan_tasks,
)
from slipway.components.ingest.quarantine import BadRowsError, Tally, check_tally, describe
from slipway.components.ingest.splitting import buckets
from slipway.components.ingest.storage import StoredFile
from slipway.components.ingest.tfrecord import ShardWriter, masked_crc32c

# Splits.


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


def test_rows_without_a_label_are_left_out_and_counted_where_the_workload_says_so(ingest, write):
    text = "n,y\n" + "".join(f"{i},{'' if i % 4 == 0 else i % 3}\n" for i in range(40))
    kept = ingest(write(text), label="y")
    assert len(kept.rows) == 40
    found = ingest(write(text), label="y", unlabelled_rows="leave_out", max_bad_share=0.0)
    assert (len(found.rows), found.report.tally.unlabelled, found.rejects) == (30, 10, [])
    assert all(row["y"] for row in found.rows)
    assert Tally.from_json(found.report.tally.to_json()) == found.report.tally


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


# Types.


def test_columns_of_two_files_are_merged_to_the_greater_type():
    first = {"a": ColumnType.INT, "b": ColumnType.UNKNOWN}
    assert merge(first, {"b": ColumnType.TEXT, "a": ColumnType.FLOAT, "c": ColumnType.INT}) == {
        "a": ColumnType.FLOAT,
        "b": ColumnType.TEXT,
        "c": ColumnType.INT,
    }


def _stock_type(cell):
    """TFX's rule, and ours for leading zeros."""
    if not cell:
        return ColumnType.UNKNOWN
    try:
        number = int(cell)
    except ValueError:
        try:
            float(cell)
        except ValueError:
            return ColumnType.TEXT
        return ColumnType.FLOAT
    digits = cell.strip().lstrip(b"+-")
    plain = len(digits) == 1 or not digits.startswith(b"0")
    return ColumnType.INT if plain and -(2**63) <= number < 2**63 else ColumnType.TEXT


NUMBERS = st.one_of(
    st.integers(-(10**22), 10**22).map(str),
    st.floats().map(repr),
    st.from_regex(r"\A[ +-]?[0-9_]{0,20}(\.[0-9]*)?(e[+-]?[0-9]{1,3})? ?\Z"),
    st.sampled_from(["nan(1)", "0x1f", "-0X1", "infinity", "1e5", "+007", "0_1", "00", "-00.5", "1."]),
    st.text(max_size=3),
)


@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_type_of_any_cells_is_that_of_tfxs_rules(cells):
    try:
        expected = max(_stock_type(cell.encode()) for cell in cells)
    except UnicodeEncodeError:
        return
    assert infer_type(pa.array(cells, pa.string())) == expected


@given(st.lists(NUMBERS, max_size=6), st.sampled_from(ColumnType), st.integers(0, 3))
def test_guess_holds_exactly_where_all_cells_give_the_same_type(cells, guess, skipped):
    try:
        texts = pa.array(cells, pa.string()).slice(skipped)
    except UnicodeEncodeError:
        return
    found = parse_guessed(texts, guess)
    if infer_type(texts, guess) == guess:
        values, bad = parse(texts, guess)
        assert found.to_pandas().equals(values.to_pandas())  # a nan equals another there
        assert found.null_count == values.null_count
        assert not bad.any()
    else:
        assert found is None


def test_fractions_become_whole_numbers_only_where_nothing_is_lost():
    values, bad = as_type(pa.array([1.0, 1.5, None, 1e300, float("nan")]), ColumnType.INT)
    assert values.to_pylist() == [1, None, None, None, None]
    assert bad.tolist() == [False, True, False, True, True]


# Encoding.


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_encoded_as_protocol_buffers_do(numbers):
    data, lengths = varints(np.array(numbers, dtype=np.int64))
    expected = [varint(number & 0xFFFFFFFFFFFFFFFF) for number in numbers]
    assert data.tobytes() == b"".join(expected)
    assert lengths.tolist() == [len(each) for each in expected]


NAMES = st.text(st.characters(codec="utf-8"), max_size=200) | st.sampled_from(["a", "ab", "a\xe9", "b"])
VALUES = {
    ColumnType.INT: (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    ColumnType.FLOAT: (st.floats(width=32), pa.float64()),
    ColumnType.TEXT: (st.binary(max_size=300), pa.large_binary()),
    ColumnType.UNKNOWN: (st.none(), pa.null()),
}


@given(st.data())
def test_examples_are_serialised_as_protocol_buffers_do(data):
    rows = data.draw(st.integers(1, 5))
    columns = data.draw(st.dictionaries(NAMES, st.sampled_from(ColumnType), max_size=5))
    arrays = {}
    for name, kind in columns.items():
        values, arrow = VALUES[kind]
        if kind != ColumnType.UNKNOWN and data.draw(st.booleans()):
            values, arrow = st.lists(values, max_size=3), pa.large_list(arrow)
        drawn = data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        arrays[name] = pa.array(drawn, arrow)
    for record in ExampleEncoder(columns).encode(arrays, rows).to_pylist():
        example = parse_example(record)
        assert example.SerializeToString(deterministic=True) == record
        assert set(example.features.feature) == set(columns)


# Framing, tasks and shards.


def test_checksum_is_that_of_tfrecord_files():
    # The head of an empty record, as TensorFlow writes it.
    assert masked_crc32c(b"\0" * 8).to_bytes(4, "little") == bytes.fromhex("29039807")


def _rows(count):
    return [b"%d" % i for i in range(count)]


@pytest.mark.parametrize("lanes", [1, 3, 8])
@pytest.mark.parametrize(("compression", "gzip_level"), [("gzip", 1), ("gzip", 9), ("none", 1), ("zstd", 1)])
def test_rows_are_dealt_over_the_shards(tmp_path, read_shard, lanes, compression, gzip_level):
    writer = ShardWriter(
        str(tmp_path / "x"),
        lanes=lanes,
        target_bytes=1 << 30,
        compression=compression,
        gzip_level=gzip_level,
        open_output=_open,
    )
    rows = _rows(20)
    writer.write(rows[:7])
    writer.write(rows[7:])
    shards = writer.close()
    dealt = [[int(record) for record in read_shard(tmp_path / shard.name)] for shard in shards]
    assert dealt == [list(range(lane, 20, lanes)) for lane in range(lanes)]
    assert [shard.rows for shard in shards] == [len(each) for each in dealt]


def test_full_shard_is_followed_by_another(tmp_path):
    writer = ShardWriter(
        str(tmp_path / "x"), lanes=1, target_bytes=100, compression="none", open_output=_open
    )
    for _ in range(6):
        writer.write(_rows(4))
    assert [shard.rows for shard in writer.close()] == [8, 8, 8]


def test_disk_that_is_full_is_reported(tmp_path):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    writer = ShardWriter("x", lanes=1, target_bytes=100, compression="none", open_output=lambda _: Full())

    def fill():
        for _ in range(100):
            writer.write(_rows(2))
        writer.close()

    with pytest.raises(OSError, match="No space left"):
        fill()


def _open(path):
    return open(path, "wb")  # noqa: PTH123


def test_small_files_share_a_task_and_large_ones_do_not():
    sizes = [TASK_BYTES // 2, TASK_BYTES // 2, 1, TASK_BYTES * MANY_TASKS, 5, 6]
    files = [StoredFile(f"f{i}", size) for i, size in enumerate(sizes)]
    tasks = plan_tasks({None: files}, {"train": "t", "eval": "e"}, quarantine="q", min_shards=5)
    assert [[file.name for file in task.files] for task in tasks] == [
        ["f0", "f1"],
        ["f2"],
        ["f3"],
        ["f4", "f5"],
    ]
    assert [task.lanes for task in tasks] == [2, 2, 2, 2]
    assert [task.quarantine for task in tasks] == [f"q/rows-0000{i}.jsonl" for i in range(4)]
    assert [task.skipped_bytes for task in tasks] == [0, sum(sizes[:2]), sum(sizes[:3]), sum(sizes[:4])]


def test_a_large_file_becomes_several_that_are_not_small():
    sizes = {
        1: LEAST_SHARD_BYTES,
        128 * LEAST_SHARD_BYTES: 2 * LEAST_SHARD_BYTES,
        65 * MOST_SHARD_BYTES: MOST_SHARD_BYTES,
    }
    for size, shard_bytes in sizes.items():
        [task] = plan_tasks({None: [StoredFile("f", size)]}, {"all": "a"}, quarantine="q", min_shards=1)
        assert task.shard_bytes == shard_bytes


def test_several_files_are_several_tasks_so_that_processes_end_together():
    def files_of_each_task(sizes):
        files = [StoredFile(f"f{i}", size) for i, size in enumerate(sizes)]
        tasks = plan_tasks({None: files}, {"all": "a"}, quarantine="q", min_shards=1)
        return [len(task.files) for task in tasks]

    assert files_of_each_task([LEAST_TASK_BYTES + 1] * 4) == [1, 1, 1, 1]
    assert files_of_each_task([LEAST_TASK_BYTES // 4] * 8) == [4, 4]
    many = files_of_each_task([TASK_BYTES // 8] * 100)
    assert many == [6] * 16 + [4]


def test_shards_are_named_as_tfx_names_them(ingest, write):
    found = ingest(write("a\n1\n2\n3\n"), split={"all": 1}, min_shards=2)
    names = final_names(found.report.shards, {"all": "dir"})
    assert [new for _, new in names] == [f"dir/data_tfrecord-0000{i}-of-00002.gz" for i in range(2)]


# The verdict.


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


def test_too_many_bad_rows_are_counted_by_reason():
    tally = Tally(10, {"train": 7}, Counter({"x": 1, "y": 2}), ["f line 3: y: raw"])
    with pytest.raises(BadRowsError) as caught:
        check_tally(tally, max_bad_share=0.2)
    assert caught.value.message == (
        "3 of 10 rows (30.00%) could not be read, more than data.max_bad_share (20.00%): 2 y, 1 x; "
        "first: f line 3: y: raw"
    )


def test_one_bad_row_is_reported_in_the_singular():
    with pytest.raises(BadRowsError, match=r"^1 of 10 rows \(10.00%\) could not be read, more than"):
        check_tally(Tally(10, {"train": 9}, Counter({"x": 1}), ["f line 3: x: raw"]), max_bad_share=0)


def test_row_is_described_without_a_terminals_escapes():
    reject = Reject("broken", Place(3, 10, b"\x1b[31mred\xff" + b"x" * 100), "a", "why")
    assert describe("f.csv", reject).startswith("f.csv line 3, column a: broken (why): \\x1b[31mred\\xff")
    assert "\x1b" not in describe("f.csv", reject)


def test_options_survive_the_way_to_a_worker():
    options = Options(columns=("a",), split_by={"key": "a"}, compression="none", quote=None)
    assert Options.from_json(options.to_json()) == options


def test_long_value_costs_no_table_of_all_lengths(monkeypatch):
    calls = []
    head = example_encoding._FeatureEncoder._head
    monkeypatch.setattr(
        example_encoding._FeatureEncoder, "_head", lambda *args: calls.append(args) or head(*args)
    )
    texts = pa.array([b"x" * 1_000_000, b"y", None, b"z" * 20_000], pa.large_binary())
    numbers = pa.array([[1] * 500_000, [2], None, [3]], pa.large_list(pa.int64()))
    kinds = {"t": ColumnType.TEXT, "n": ColumnType.INT}
    records = ExampleEncoder(kinds).encode({"t": texts, "n": numbers}, 4).to_pylist()
    read = [parse_example(record).features.feature for record in records]
    assert [list(each["t"].bytes_list.value) for each in read] == [
        [b"x" * 1_000_000],
        [b"y"],
        [],
        [b"z" * 20_000],
    ]
    assert [list(each["n"].int64_list.value) for each in read] == [[1] * 500_000, [2], [], [3]]
    assert len(calls) <= 8


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
