"""Images among values of bytes: which are small in a file, and too large or endless to decode."""

import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.ingest.blocks import InputFile
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.encoded_images import image_problem, image_problems, problem_in_example
from slipway.components.ingest.example_encoding import ExampleEncoder
from slipway.components.ingest.options import Options
from slipway.components.ingest.source_limits import TOO_LARGE, SourceLimits
from slipway.components.ingest.tfrecord import frame
from slipway.components.ingest.typed_rows import example_rows

LIMITS = SourceLimits(image_pixels=1_000_000)
SMALL = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 1000, 1000) + bytes(9)
LARGE = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 1001, 1000) + bytes(9)
WIDE_GIF = b"GIF89a" + struct.pack("<HHBBB", 1001, 1000, 0, 0, 0) + b"\x2c" + struct.pack(
    "<HHHHB", 0, 0, 1001, 1000, 0
) + b"\x02\x00\x3b"  # fmt: skip
SCANS = b"\xff\xd8\xff\xc2" + struct.pack(">HBHH", 8, 8, 10, 10) + b"\0" + b"\xff\xda\x00\x02\x00" * 101
ANIMATION = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0" + bytes(6)
TOO_MANY = "an image of 1,001,000 pixels, more than data.limits.image_pixels (1,000,000)"


LONG = b"\xff\xd8" + b"\xff" * 1_000_002


@pytest.mark.parametrize("data", [LARGE, WIDE_GIF, SCANS, ANIMATION, LONG])
def test_image_that_is_too_large_or_has_too_many_scans_or_frames_is_told(data):
    assert image_problem(data, LIMITS)


@pytest.mark.parametrize("data", [SMALL, b"", b"a text", b"GIF8", b"RIFF", SCANS[:200], b"x" + LARGE])
def test_other_images_and_other_bytes_are_left_alone(data):
    assert not image_problem(data, LIMITS)


def test_rows_are_found_by_the_images_that_their_lists_hold():
    column = pa.array([[SMALL], [], [b"text", LARGE], None, [SCANS, LARGE]], pa.large_list(pa.large_binary()))
    assert image_problems(column, LIMITS) == {2: TOO_MANY, 4: "a JPEG of more than 100 scans"}
    assert image_problems(column[1:4], LIMITS) == {1: TOO_MANY}
    assert image_problems(pa.array([None, LARGE, SMALL], pa.large_binary()), LIMITS) == {1: TOO_MANY}


def test_values_that_are_missing_or_only_begin_like_images_hold_none():
    there = pa.array([b"RIFLE RANGE, UPPER HALL", LARGE, LARGE, b"GIF8"], pa.large_binary())
    bits = pa.py_buffer(bytes([0b1101]))  # the bytes of the second value are still there
    values = pa.Array.from_buffers(there.type, 4, [bits, *there.buffers()[1:]])
    assert values.to_pylist()[1] is None
    assert image_problems(values, LIMITS) == {2: TOO_MANY}


@pytest.mark.parametrize("values", [[1, 2], [None, None], [], [[1.0]]])
def test_columns_of_other_values_hold_no_images(values):
    assert image_problems(pa.array(values), LIMITS) == {}


def test_images_in_an_example_are_found_with_their_feature():
    column = {"photo": pa.array([SMALL, LARGE], pa.large_binary())}
    small, large = ExampleEncoder({"photo": ColumnType.TEXT}).encode(column, 2).to_pylist()
    assert problem_in_example(small, LIMITS) is None
    assert problem_in_example(large, LIMITS) == ("photo", TOO_MANY)


@pytest.mark.parametrize("form", ["parquet", "tfrecord"])
def test_row_with_such_an_image_is_rejected_by_what_reads_rows_to_predict(form, tmp_path):
    path = tmp_path / f"rows.{form}"
    images = pa.array([SMALL, LARGE, SMALL], pa.large_binary())
    if form == "parquet":
        pq.write_table(pa.table({"image": images}), path)
    else:
        encoded = ExampleEncoder({"image": ColumnType.TEXT}).encode({"image": images}, 3)
        path.write_bytes(frame(encoded.to_pylist()))
    options = Options(format=form, limits=LIMITS)
    columns = {"image": ColumnType.TEXT} if form == "parquet" else {}
    [found] = example_rows(InputFile(path.name, path), options, columns, known={})
    assert found.rows.tolist() == [0, 2]
    [(row, reject)] = found.rejects
    assert (row, reject.reason, reject.column, reject.detail) == (1, TOO_LARGE, "image", TOO_MANY)


def test_row_with_such_an_image_goes_to_the_quarantine(ingest, tmp_path):
    path = tmp_path / "in/rows.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"image": pa.array([SMALL, LARGE], pa.large_binary()), "n": [1, 2]}), path)
    found = ingest(path, format="parquet", limits=LIMITS, split={"all": 1})
    assert found.reasons == [TOO_LARGE]
    assert [row["n"] for row in found.rows] == [[1]]
