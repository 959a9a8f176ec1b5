"""Arrays of images: what their headers may say, how large an image may be, and what keeps them small."""

import io
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from slipway.components.ingest import npz_images
from slipway.components.ingest.blocks import FileError, InputFile
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.example_encoding import ExampleEncoder
from slipway.components.ingest.example_message import parse_example
from slipway.components.ingest.options import Options
from slipway.components.ingest.source_limits import SourceLimits

ALL = {"format": "npz", "split": {"all": 1}}


def array_bytes(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.fixture
def npz(tmp_path):
    """Writes members as they are given; an array as numpy writes it."""

    def written(compression=zipfile.ZIP_DEFLATED, **members):
        path = tmp_path / "in.npz"
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, member in members.items():
                archive.writestr(
                    f"{name}.npy", member if isinstance(member, bytes) else array_bytes(np.asarray(member))
                )
        return path

    return written


def with_shape(array, shape):
    """An array's bytes behind a header that says another shape."""
    written = array_bytes(array)
    said = str(array.shape).encode()
    assert written.count(said) == 1
    return written.replace(said + b", }" + b" " * (len(str(shape)) - len(said)), str(shape).encode() + b", }")


@pytest.mark.parametrize("shape", [(-4, 2, 2), (4, -2, -2), (4, 2**40, 2**40), (4, 3, 2), (4, 1, 1)])
def test_header_that_says_more_or_less_than_there_is_is_refused(ingest, npz, shape):
    path = npz(x_train=with_shape(np.zeros((4, 2, 2), np.uint8), shape), y_train=np.zeros(4, np.uint8))
    with pytest.raises(FileError, match=r"the header of x_train says .* of uint8, and 16 bytes follow"):
        ingest(path, **ALL)


def test_header_of_gigabytes_is_not_read(ingest, npz):
    path = npz(
        x_train=b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little") + b" " * 1000, y_train=np.zeros(4)
    )
    with pytest.raises(FileError, match=r"not a readable npz file: a header of 2,147,483,648 bytes"):
        ingest(path, **ALL)


def test_archive_that_is_packed_otherwise_than_numpy_packs_is_refused(ingest, npz):
    path = npz(zipfile.ZIP_LZMA, x_train=np.zeros((2, 2, 2)), y_train=np.zeros(2))
    with pytest.raises(FileError, match="x_train is compressed by method 14, which numpy does not write"):
        ingest(path, **ALL)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"image_pixels": 47}, r"\(4, 4, 3\) of uint8, is 48, more than data\.limits\.image_pixels \(47\)"),
        ({"decoded_bytes": 47}, r"\(4, 4, 3\) of uint8, is 48, more than data\.limits\.decoded_bytes \(47\)"),
    ],
)
def test_image_above_a_limit_is_refused_with_the_key_that_raises_it(ingest, npz, limits, message):
    path = npz(x_train=np.zeros((2, 4, 4, 3), np.uint8), y_train=np.zeros(2, np.uint8))
    with pytest.raises(FileError, match=message) as caught:
        ingest(path, limits=SourceLimits(**limits), **ALL)
    assert "raise data.limits." in caught.value.hint
    assert len(ingest(path, limits=SourceLimits(**dict.fromkeys(limits, 48)), **ALL).rows) == 2


def test_whole_number_beyond_64_bits_is_quarantined_and_none_becomes_negative(ingest, npz):
    pixels = np.array([[[1, 2]], [[2**63, 4]], [[2**63 - 1, 6]]], np.uint64)
    path = npz(x_train=pixels, y_train=np.array([1, 2, 2**64 - 1], np.uint64))
    found = ingest(path, **ALL)
    assert found.rows == [{"image": [1, 2], "label": [1]}]
    assert [(each["offset"], each["column"]) for each in found.rejects] == [(1, "image"), (2, "label")]


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.uint16, ">i4", np.float16])
def test_pixels_of_any_kind_are_what_they_were(ingest, npz, dtype):
    pixels = np.random.default_rng(1).integers(0, 256, (5, 3, 2)).astype(dtype)
    found = ingest(npz(x_train=pixels, y_train=np.arange(5, dtype=np.uint8)), **ALL)
    assert [row["image"] for row in found.rows] == [image.ravel().tolist() for image in pixels]
    assert [row["label"] for row in found.rows] == [[each] for each in range(5)]


def test_bytes_are_split_by_like_other_numbers(ingest, npz):
    path = npz(x_train=np.zeros((40, 2, 2), np.uint8), y_train=(np.arange(40) % 10).astype(np.uint8))
    found = ingest(path, format="npz", split={"train": 1, "eval": 1}, split_by={"key": "label"})
    train, held = ({row["label"][0] for row in rows} for rows in found.splits.values())
    assert train | held == set(range(10))
    assert not train & held


def test_bytes_stay_bytes_on_their_way(npz):
    path = npz(x_train=np.full((3, 1000, 1000), 200, np.uint8), y_train=np.zeros(3, np.uint8))
    file, options = InputFile("in.npz", path), Options(format="npz")
    columns = npz_images.infer(file, options, {})
    [block, *_] = npz_images.read(file, options, columns)
    assert block.columns["image"].values.type == pa.uint8()
    encoder = ExampleEncoder(columns)
    tracemalloc.start()
    try:
        [record] = encoder.encode(block.columns, 1).to_pylist()
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16 * 1_000_000  # 13 bytes a pixel, of which the example has two; 26 as int64
    assert parse_example(record).features.feature["image"].int64_list.value[:] == [200] * 1_000_000


def test_bytes_are_encoded_as_other_whole_numbers_are():
    lists = [[0, 127, 128, 255], [], None, [1], [255] * 300]
    rows = [
        ExampleEncoder({"n": ColumnType.INT})
        .encode({"n": pa.array(lists, pa.large_list(kind))}, len(lists))
        .to_pylist()
        for kind in (pa.uint8(), pa.int64())
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "header", ["(" * 5000, "-" * 9000 + "1", "{'descr': '|u1'", "'''", "{'shape': (" + "9" * 5000 + ",)}"]
)
def test_header_that_is_no_header_is_refused_in_few_words(ingest, npz, header):
    text = header.encode()
    member = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text

    with pytest.raises(FileError, match="is not a readable npz file") as refused:
        ingest(npz(x_train=member, y_train=[0, 1]), **ALL)

    assert len(refused.value.message) < 400
