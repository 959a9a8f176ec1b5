"""Files of records: which are passed on as they are, and which are refused."""

import bz2
import gzip

import pyarrow as pa
import pytest
import zstandard

from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.convert import Report
from slipway.components.ingest.example_encoding import ExampleEncoder
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.ingest.tfrecord import frame

ALL = {"split": {"all": 1}}
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}


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


@pytest.mark.parametrize(("suffix", "pack"), PACK.items(), ids=PACK)
def test_compressed_records_are_unpacked(ingest, records, suffix, pack):
    path, _ = records(100)
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


def test_empty_file_of_records_has_no_rows(ingest, write):
    # As the stock components write it where a shard has none; a source without any row is refused.
    assert ingest(write(b"", "in.tfrecord"), format="tfrecord").rows == []


@pytest.mark.parametrize(("suffix", "pack"), PACK.items(), ids=PACK)
def test_compressed_file_of_records_without_a_byte_is_cut_short_and_one_of_no_records_is_not(
    ingest, write, records, suffix, pack
):
    path, _ = records(10)
    write(pack(path.read_bytes()), f"full.tfrecord{suffix}")
    pattern = write(pack(b""), f"none.tfrecord{suffix}").with_name(f"*.tfrecord{suffix}")

    assert len(ingest(pattern, format="tfrecord").rows) == 10
    write(b"", f"none.tfrecord{suffix}")
    with pytest.raises(FileError, match=r"none\.tfrecord\.\w+ is cut short: it has 0 bytes"):
        ingest(pattern, format="tfrecord")


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


def test_no_more_features_than_columns_are_read_of_a_file(ingest, tmp_path):
    encoded = [
        record
        for names in (["a", "b"], ["b", "c"], ["c", "d"])
        for record in ExampleEncoder(dict.fromkeys(names, ColumnType.INT))
        .encode({name: pa.array([1], pa.int64()) for name in names}, 1)
        .to_pylist()
    ]
    (tmp_path / "in.tfrecord").write_bytes(frame(encoded))
    settings = {"format": "tfrecord", **ALL}
    found = ingest(tmp_path / "in.tfrecord", **settings, limits=SourceLimits(columns=4))
    assert found.report.features == {"a", "b", "c", "d"}
    assert Report.from_json(found.report.to_json()).features == found.report.features
    with pytest.raises(FileError) as caught:
        ingest(tmp_path / "in.tfrecord", **settings, limits=SourceLimits(columns=3))
    assert caught.value.message.endswith("in.tfrecord has 4 columns, more than data.limits.columns (3)")
    assert caught.value.hint.startswith("write the examples anew with the features that you need, or raise")
