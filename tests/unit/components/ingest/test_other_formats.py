"""JSON Lines, Parquet, TFRecord, arrays and folders of images: what rows become, and what is refused."""

import bz2
import contextlib
import gzip
import io
import json
import shutil
import sys
import zipfile
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.example_encoding import ExampleEncoder
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.ingest.tfrecord import frame

ALL = {"split": {"all": 1}}

# JSON Lines.


def test_json_objects_become_rows_with_every_key(ingest, write):
    lines = [
        '{"n": 1, "x": 2, "s": "a", "l": [1, 2]}',
        '{"x": 2.5, "b": true, "s": ""}',
        "",
        '{"n": null, "l": []}',
    ]
    found = ingest(write("\n".join(lines), "in.jsonl"), format="jsonl", **ALL)
    assert found.rows == [
        {"n": [1], "x": [2.0], "s": [b"a"], "l": [1, 2], "b": []},
        {"n": [], "x": [2.5], "s": [b""], "l": [], "b": [1]},
        {"n": [], "x": [], "s": [], "l": [], "b": []},
    ]


def test_json_column_of_text_and_numbers_is_text(ingest, write):
    found = ingest(write('{"a": 1}\n{"a": "x"}\n{"a": [2.5, null]}\n', "in.jsonl"), format="jsonl", **ALL)
    assert [row["a"] for row in found.rows][:2] == [[b"1"], [b"x"]]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"a": 1', "broken JSON"),
        ('{"a": NaN}', "NaN or Infinity, which JSON does not have"),
        ('{"a": [1, -Infinity]}', "NaN or Infinity, which JSON does not have"),
        ('{"a": "NaN" 1}', "broken JSON"),
        ("[1]", "not a JSON object"),
        ("5", "not a JSON object"),
        ('{"a": {"b": 1}}', "nested JSON"),
        ('{"a": [[1]]}', "nested JSON"),
        ('{"a": 9223372036854775808}', "a whole number beyond 64 bits"),
        ('{"a": "' + "x" * 2000 + '"}', "longer than the limit"),
        (b'{"a": "caf\xe9"}', "not valid text"),
        ("x" * 5000, "longer than the limit"),
    ],
)
def test_line_that_is_no_row_is_quarantined(ingest, write, line, reason):
    content = b'{"a": 1}\n' + (line.encode() if isinstance(line, str) else line) + b'\n{"a": 3}\n'
    found = ingest(
        write(content, "in.jsonl"),
        format="jsonl",
        limits=SourceLimits(row_bytes=1000),
        block_bytes=500,
        **ALL,
    )
    assert [row["a"] for row in found.rows] == [[1], [3]]
    assert [(r["line"], r["offset"], r["reason"]) for r in found.rejects] == [(2, 9, reason)]


def test_json_value_of_another_type_than_the_schema_says_is_quarantined(ingest, write):
    path = write('{"a": 1}\n{"a": "1"}\n{"a": 2.0}\n{"a": 2.5}\n', "in.jsonl")
    found = ingest(path, format="jsonl", known={"a": ColumnType.INT}, **ALL)
    assert [row["a"] for row in found.rows] == [[1], [2]]
    assert [(r["line"], r["column"], r["reason"]) for r in found.rejects] == [
        (2, "a", "not a whole number"),
        (4, "a", "not a whole number"),
    ]


def test_json_with_byte_order_mark_and_compression(ingest, write):
    path = write(gzip.compress(b'\xef\xbb\xbf{"a": 1}\n'), "in.jsonl.gz")
    assert ingest(path, format="jsonl", **ALL).rows == [{"a": [1]}]


def test_file_without_an_object_is_refused(ingest, write):
    with pytest.raises(FileError, match="holds no JSON object"):
        ingest(write("a,b\n1,2\n", "in.jsonl"), format="jsonl")


# Parquet.


@pytest.fixture
def parquet(tmp_path):
    def written(columns, name="in.parquet", **options):
        path = tmp_path / "in" / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), path, **options)
        return path

    return written


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


# TFRecord.


@pytest.fixture
def records(tmp_path):
    """Writes Examples with a whole number n and a text s into a TFRecord file."""

    def written(count, name="in.tfrecord"):
        columns = {
            "n": pa.array(range(count), pa.int64()),
            "s": pa.array([b"x%d" % (i % 3) for i in range(count)], pa.large_binary()),
        }
        encoded = ExampleEncoder({"n": ColumnType.INT, "s": ColumnType.TEXT}).encode(columns, count)
        path = tmp_path / "in" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(frame(encoded.to_pylist()))
        return path, encoded.to_pylist()

    return written


def test_records_are_passed_on_as_they_are(ingest, records, read_shard):
    path, content = records(100)
    found = ingest(path, format="tfrecord", block_bytes=200)
    passed = [record for paths in found.files.values() for file in paths for record in read_shard(file)]
    assert sorted(passed) == sorted(content)
    assert 40 < len(found.splits["train"]) < 90


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_compressed_records_are_unpacked(ingest, records, suffix):
    path, _ = records(100)
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}[suffix]
    packed = path.with_name(f"in.tfrecord{suffix}")
    packed.write_bytes(pack(path.read_bytes()))
    assert len(ingest(packed, format="tfrecord").rows) == 100
    packed.write_bytes(packed.read_bytes()[:-5])
    with pytest.raises(FileError, match=r"in\.tfrecord\.\w+ is damaged or cut short after \d+ bytes"):
        ingest(packed, format="tfrecord")


@pytest.mark.parametrize("first", ["whole", "fraction", "text"])
def test_record_whose_key_has_another_type_is_in_the_quarantine_not_among_those_without_one(
    ingest, tmp_path, first
):
    from slipway.components.ingest.example_message import MESSAGES

    def record(value):
        example = MESSAGES["Example"]()
        feature = example.features.feature["s"]
        kind = {int: feature.int64_list, float: feature.float_list, bytes: feature.bytes_list}[type(value)]
        kind.value.append(value)
        return example.SerializeToString()

    written = {
        "whole": [record(number) for number in range(40)],
        "fraction": [record(float(number)) for number in range(40)],
        "text": [record(b"%d" % number) for number in range(40)],
    }
    order = sorted(written, key=lambda kind: kind != first)
    (tmp_path / "in.tfrecord").write_bytes(frame([each for kind in order for each in written[kind]]))
    found = ingest(tmp_path / "in.tfrecord", format="tfrecord", split_by={"key": "s"}, max_bad_share=1.0)
    assert found.reasons == ["a value of another type than other records"] * (80 if first == "text" else 40)
    if first != "text":  # 7 and 7.0 are one key
        split_of = {}
        for split, rows in found.splits.items():
            for row in rows:
                assert split_of.setdefault(int(row["s"][0]), split) == split
        assert set(split_of.values()) == {"train", "eval"}


def test_records_are_split_by_a_key(ingest, records):
    path, _ = records(60)
    found = ingest(path, format="tfrecord", split_by={"key": "s"}, split={"train": 1, "eval": 1})
    keys = [{row["s"][0] for row in rows} for rows in found.splits.values()]
    assert not keys[0] & keys[1]
    assert len(found.rows) == 60


def test_record_with_wrong_checksum_or_content_is_quarantined(ingest, records):
    path, content = records(10)
    data = bytearray(path.read_bytes())
    size = 16 + len(content[0])
    data[2 * size + 14] ^= 255
    path.write_bytes(bytes(data) + frame([b"\xff\xff"]))
    found = ingest(path, format="tfrecord", **ALL)
    assert [(r["offset"], r["reason"]) for r in found.rejects] == [
        (2 * size, "broken checksum"),
        (len(data), "not a tf.Example"),
    ]
    assert len(found.rows) == 9


def test_record_above_the_limit_is_quarantined_and_the_next_is_read(ingest, records):
    path, content = records(3)
    long = frame([bytes(1_000_000)])
    path.write_bytes(frame(content[:2]) + long + frame(content[2:]))
    found = ingest(path, format="tfrecord", limits=SourceLimits(row_bytes=1000), **ALL)
    assert [row["n"] for row in found.rows] == [[0], [1], [2]]
    [reject] = found.rejects
    assert (reject["offset"], reject["reason"]) == (len(frame(content[:2])), "longer than the limit")
    assert reject["detail"] == "more than data.limits.row_bytes (1,000)"
    path.write_bytes(frame(content[:2]) + long[:-1])
    with pytest.raises(FileError, match=r"from byte \d+ on: the file ends within a record"):
        ingest(path, format="tfrecord", limits=SourceLimits(row_bytes=1000), **ALL)


@pytest.mark.parametrize("cut", [-1, -7, 5])
def test_record_file_cut_short_is_refused_with_the_place(ingest, records, cut):
    path, _ = records(5)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(FileError, match=r"cannot be read from byte \d+ on: the file ends within a record"):
        ingest(path, format="tfrecord")


def test_file_that_is_no_tfrecord_is_refused(ingest, write):
    with pytest.raises(FileError, match="cannot be read from byte 0 on: no record"):
        ingest(write("a,b\n1,2\n3,4\n5,6\n", "in.tfrecord"), format="tfrecord")


# Arrays.


@pytest.fixture
def npz(tmp_path):
    def written(name="in.npz", **arrays):
        path = tmp_path / "in" / name
        path.parent.mkdir(exist_ok=True)
        np.savez(path, **arrays)
        return path

    return written


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32])
def test_images_and_classes_become_rows_in_the_parts_of_the_file(ingest, npz, dtype):
    pixels = np.random.default_rng(1).integers(0, 256, (30, 4, 5)).astype(dtype)
    classes = np.arange(30, dtype=np.uint8)
    path = npz(x_train=pixels[:20], y_train=classes[:20], x_test=pixels[20:], y_test=classes[20:])
    found = ingest(path, format="npz", label="digit", split_by={"parts": {"train": "train", "eval": "test"}})
    assert {name: len(rows) for name, rows in found.splits.items()} == {"train": 20, "eval": 10}
    for row in found.rows:
        assert row["image"] == pixels[row["digit"][0]].ravel().tolist()


def test_part_that_no_split_takes_is_quarantined_not_dropped(ingest, npz):
    arrays = {
        "x_train": np.zeros((2, 2, 2)),
        "y_train": np.zeros(2),
        "x_test": np.ones((1, 2, 2)),
        "y_test": np.ones(1),
    }
    found = ingest(npz(**arrays), format="npz", split_by={"parts": {"train": "train"}})
    assert [(r["reason"], r["detail"]) for r in found.rejects] == [("in no split", "part 'test'")]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": np.zeros((2, 2))}, "holds no x_train, but images"),
        ({"x_train": np.zeros((2, 2))}, "holds x_train but no y_train"),
        ({"x_train": np.zeros((2, 2)), "y_train": np.zeros(3)}, r"shape \(2, 2\) and y_train \(3,\)"),
        ({"x_train": np.zeros(2), "y_train": np.zeros(2)}, r"shape \(2,\)"),
        ({"x_train": np.array([["a"]]), "y_train": np.zeros(1)}, "x_train holds <U1"),
        ({"x_train": np.zeros((2, 2)), "y_train": np.array([{}, {}])}, "y_train holds object"),
    ],
)
def test_arrays_that_are_no_images_with_classes_are_refused(ingest, npz, arrays, message):
    with pytest.raises(FileError, match=message):
        ingest(npz(**arrays), format="npz")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_npz_with_an_array_twice_is_refused(ingest, npz):
    path = npz(x_train=np.zeros((4, 2, 2), np.uint8), y_train=np.arange(4))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x_train.npy", archive.read("x_train.npy"))
    with pytest.raises(FileError, match=r"in\.npz holds 'x_train\.npy' twice"):
        ingest(path, format="npz", split_by={"parts": {"train": ["train"]}})


def test_npz_cut_short_is_refused(ingest, npz):
    path = npz(x_train=np.zeros((2, 2)), y_train=np.zeros(2))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FileError, match="is not a readable npz file"):
        ingest(path, format="npz")


@pytest.mark.parametrize(("flag", "message"), [(1, "is encrypted"), (32, "compressed patched data")])
def test_npz_that_zipfile_cannot_open_is_refused(ingest, npz, flag, message):
    path = npz(x_train=np.zeros((2, 2)), y_train=np.zeros(2))
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= flag  # of the first member, in the table of contents
    path.write_bytes(content)
    with pytest.raises(FileError, match=rf"in\.npz is not a readable npz file: .*{message}"):
        ingest(path, format="npz")


# Folders of images; what is refused of them is in test_images.py.


def _png(size=4):
    out = io.BytesIO()
    Image.new("L", (size, size), 7).save(out, "png")
    return out.getvalue()


def test_images_get_the_class_of_their_folder(ingest, write):
    data = _png()
    for name in ("cat/1.png", "cat/2.png", "dog/1.png"):
        path = write(data, name)
    found = ingest(path.parent.parent / "*/*.png", format="images", label="animal", **ALL)
    assert found.rows == [{"image": [data], "animal": [label]} for label in (b"cat", b"cat", b"dog")]


def test_file_changed_while_it_is_read_is_refused(ingest, write):
    path = write("a\n" + "1\n" * 1000)
    with pytest.raises(FileError, match=r"in\.csv was changed while it was read"):
        ingest(path, block_bytes=100, progress=lambda rows, done: path.write_text("a\n" + "2\n" * 999))


def test_file_deleted_while_it_is_read_is_refused(ingest, write):
    path = write("a\n" + "1\n" * 1000)
    with pytest.raises(FileError, match=r"in\.csv was deleted while it was read"):
        ingest(path, block_bytes=100, progress=lambda rows, done: path.unlink(missing_ok=True))


def test_file_replaced_while_it_is_read_is_refused(ingest, write):
    path, other = write("a\n" + "1\n" * 1000), write("a\n" + "2\n" * 1000, "other.csv")
    with pytest.raises(FileError, match=r"in\.csv was changed while it was read"):
        ingest(path, block_bytes=100, progress=lambda rows, done: other.exists() and other.replace(path))


def test_same_content_has_the_same_digest_anywhere(ingest, write, tmp_path):
    from slipway.components.ingest.digest import combined

    path = write("a\n1\n")
    first = combined(ingest(path).report.digests)
    (tmp_path / "else").mkdir()
    shutil.copy(path, tmp_path / "else/other.csv")
    assert combined(ingest(tmp_path / "else/*.csv").report.digests) == first
    assert combined(ingest(write("a\n2\n")).report.digests) != first


def test_rejects_are_json_lines(ingest, write):
    found = ingest(write(b"a,b\n1,2\n\xff,3,4\n"), **ALL)
    assert json.loads(json.dumps(found.rejects)) == found.rejects
    assert "raw_base64" in found.rejects[0]


# Whatever the format.


def _sample(name):
    out = io.BytesIO()
    if name == "in.csv":
        out.write(b'a,b\n1,"x"\n2,y\n')
    elif name == "in.jsonl":
        out.write(b'{"a": 1, "s": "x"}\n{"a": 2.5, "l": [1, 2]}\n')
    elif name == "in.tfrecord":
        numbers = pa.array([1, 2, 3], pa.int64())
        out.write(frame(ExampleEncoder({"n": ColumnType.INT}).encode({"n": numbers}, 3).to_pylist()))
    elif name == "in.parquet":
        pq.write_table(pa.table({"a": [1, 2, 3], "s": ["x", "y", None], "l": [[1], [], None]}), out)
    elif name == "in.npz":
        np.savez(out, x_train=np.arange(8).reshape(2, 2, 2), y_train=np.array([1, 2]))
    else:
        return _png()
    return out.getvalue()


FORMAT_OF = {
    "in.csv": "csv", "in.jsonl": "jsonl", "in.tfrecord": "tfrecord", "in.parquet": "parquet", "in.npz": "npz",
    "in.png": "images",
}  # fmt: skip


@pytest.mark.parametrize("name", FORMAT_OF)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_harmed_file_is_rows_or_quarantined_or_refused(ingest, write, name, data):
    content = bytearray(_sample(name))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        harm = data.draw(st.sampled_from(["change", "cut", "insert"]))
        if harm == "cut":
            del content[at:]
        else:
            content[at : at + (harm == "change")] = data.draw(st.binary(min_size=1, max_size=5))
    # The fixture holds the rows that come back and those in quarantine against the rows read.
    with contextlib.suppress(FileError):
        ingest(write(bytes(content), f"class/{name}"), format=FORMAT_OF[name], split={"all": 1})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("in.csv", "is empty"),
        ("in.jsonl", "holds no JSON object"),
        ("in.parquet", "is not a readable Parquet"),
        ("in.npz", "is not a readable npz"),
    ],
)
def test_empty_file_of_any_format_is_refused(ingest, write, name, message):
    with pytest.raises(FileError, match=message) as caught:
        ingest(write(b"", name), format=FORMAT_OF[name])
    assert name in caught.value.message
    assert caught.value.hint


def test_empty_file_of_records_has_no_rows(ingest, write):
    # As the stock components write it where a shard has none; a source without any row is refused.
    assert ingest(write(b"", "in.tfrecord"), format="tfrecord").rows == []


@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
def test_line_above_the_limit_is_one_wherever_it_stands(ingest, write, block_bytes):
    lines = ['{"a": 1}', '{"a": "' + "x" * 1992 + '"}', '{"a": "' + "x" * 1991 + '"}']
    found = ingest(
        write("\n".join(lines) + "\n", "in.jsonl"),
        format="jsonl",
        block_bytes=block_bytes,
        limits=SourceLimits(row_bytes=2000),
        **ALL,
    )
    assert len(found.rows) == 2
    assert [(each["line"], each["reason"]) for each in found.rejects] == [(2, "longer than the limit")]


# Bytes that are no text.


def _no_strings(values, kind):
    """Texts as Arrow has them where nobody has checked that they are some."""
    bytes_of = pa.array(values, pa.binary())
    return pa.Array.from_buffers(kind, len(bytes_of), bytes_of.buffers())


@pytest.mark.parametrize(
    ("column", "settings"),
    [
        (pa.array([b"a", b"\xffb", None, b"c"]), {"types": {"t": "text"}}),
        (_no_strings([b"a", b"\xffb", None, b"c"], pa.string()), {}),
        (_no_strings([b"a", b"\xffb", None, b"c"], pa.string()).dictionary_encode(), {}),
    ],
)
def test_row_without_text_in_a_column_of_texts_is_rejected_with_its_bytes(ingest, tmp_path, column, settings):
    pq.write_table(pa.table({"n": [1, 2, 3, 4], "t": column}), tmp_path / "in.parquet")
    found = ingest(tmp_path / "in.parquet", format="parquet", **settings, **ALL)
    assert [(row["n"], row["t"]) for row in found.rows] == [([1], [b"a"]), ([3], []), ([4], [b"c"])]
    [reject] = found.rejects
    assert (reject["offset"], reject["column"], reject["reason"]) == (1, "t", "not valid text")
    assert reject["detail"] == "b'\\xffb'"


def test_text_in_a_list_counts_and_bytes_elsewhere_may_be_anything(ingest, tmp_path):
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), pa.array([b"a", b"b", b"\xff"]))
    pq.write_table(pa.table({"image": [b"\xff\xd8", b"\xff\xd8"], "l": lists}), tmp_path / "in.parquet")
    kept = ingest(tmp_path / "in.parquet", format="parquet", **ALL)
    assert [row["l"] for row in kept.rows] == [[b"a", b"b"], [b"\xff"]]
    found = ingest(tmp_path / "in.parquet", format="parquet", types={"l": "text"}, **ALL)
    assert [row["l"] for row in found.rows] == [[b"a", b"b"]]
    assert [(each["offset"], each["column"]) for each in found.rejects] == [(1, "l")]
