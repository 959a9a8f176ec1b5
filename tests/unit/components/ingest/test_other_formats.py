"""Files of any format that are harmed, empty or changed; arrays and folders of images: what they become."""

import contextlib
import io
import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.example_encoding import ExampleEncoder
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.ingest.tfrecord import frame

ALL = {"split": {"all": 1}}

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


# Folders of images; what is refused of them is in test_image_files.py.


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
