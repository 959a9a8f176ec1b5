"""Raw bytes of images: written by the transform, decoded a whole batch at a time, kept as bytes."""

import io

import numpy as np
import pytest
from PIL import Image

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

SHAPE = (4, 3, 2)
FEATURES = (Feature(name="image", dtype="uint8", shape=SHAPE), Feature(name="y", dtype="int64"))


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (10, *SHAPE)).astype("uint8")


@pytest.fixture
def file(images, tmp_path):
    import tensorflow as tf

    from slipway.components.trainer.pixels import raw_pixels

    with tf.io.TFRecordWriter(str(tmp_path / "rows")) as writer:
        for number, raw in enumerate(raw_pixels(tf.constant(images, tf.int64)).numpy()):
            example = tf.train.Example()
            example.features.feature["image"].bytes_list.value.append(raw)
            example.features.feature["y"].int64_list.value.append(number)
            writer.write(example.SerializeToString())
    return str(tmp_path / "rows")


def test_raw_pixels_are_the_bytes_of_the_array(images):
    import tensorflow as tf

    from slipway.components.trainer.pixels import decoded_pixels, raw_pixels

    raw = raw_pixels(tf.constant(images, tf.int64))
    assert raw.numpy().tolist() == [image.tobytes() for image in images]
    for strings in (raw, raw[:, tf.newaxis]):
        np.testing.assert_array_equal(decoded_pixels(strings, SHAPE), images)


def test_numbers_that_are_no_bytes_become_the_nearest():
    import tensorflow as tf

    from slipway.components.trainer.pixels import raw_pixels

    strange = tf.constant([[-(2**62), -1, 0, 255, 256, 2**62]], tf.int64)
    assert raw_pixels(strange).numpy().tolist() == [bytes([0, 0, 0, 255, 255, 255])]


def _file(image, kind, mode="RGB"):
    out = io.BytesIO()
    image.convert(mode).save(out, kind)
    return out.getvalue()


@pytest.fixture
def picture():
    """20 rows of 24 pixels, whose colours change slowly."""
    shade = np.linspace(0, 255, 20 * 24).reshape(20, 24)
    return Image.fromarray(np.stack([shade, shade[::-1], 255 - shade], -1).astype("uint8"))


@pytest.mark.parametrize(
    ("kind", "mode", "apart"),
    [
        ("PNG", "L", 0),
        ("PNG", "LA", 0),
        ("PNG", "P", 0),
        ("PNG", "RGBA", 0),
        ("JPEG", "L", 1),
        ("JPEG", "RGB", 4),
        ("JPEG", "CMYK", 4),
        ("GIF", "P", 0),
        ("BMP", "L", 0),
        ("BMP", "RGB", 0),
    ],
)
def test_image_files_show_what_another_library_sees_in_them(picture, kind, mode, apart):
    import tensorflow as tf

    from slipway.components.trainer.pixels import decoded_images

    file = _file(picture, kind, mode)
    for channels, as_seen in ((3, "RGB"), (1, "L")):
        found = decoded_images(tf.constant([file]), (20, 24, channels))
        assert (found.dtype, found.shape) == (tf.uint8, (1, 20, 24, channels))
        seen = np.asarray(Image.open(io.BytesIO(file)).convert(as_seen), dtype=int).reshape(found.shape)
        # To grey, the two libraries round differently.
        assert np.abs(found.numpy() - seen).max() <= apart + (channels == 1)


def test_images_of_different_sizes_get_one_size_and_columns_may_be_sparse(picture):
    import tensorflow as tf

    from slipway.components.trainer.pixels import decoded_images

    files = [_file(picture, "PNG"), _file(picture.resize((48, 40)), "PNG")]
    dense = decoded_images(tf.constant(files)[:, tf.newaxis], (10, 12, 3)).numpy().astype(int)
    assert dense.shape == (2, 10, 12, 3)
    assert np.abs(dense[0] - np.asarray(picture.resize((12, 10)), dtype=int)).max() <= 8
    assert np.abs(dense[0] - dense[1]).max() <= 8
    sparse = tf.sparse.from_dense(tf.constant(files)[:, tf.newaxis])
    np.testing.assert_array_equal(decoded_images(sparse, (10, 12, 3)), dense)


def test_what_is_no_image_is_black_and_a_damaged_one_is_reported(picture):
    import tensorflow as tf

    from slipway.components.trainer.pixels import decoded_images

    strange = tf.constant([b"", b"B", "☃ never seen".encode()])
    assert not decoded_images(strange, (2, 3, 1)).numpy().any()
    assert decoded_images(strange[:0], (2, 3, 1)).shape == (0, 2, 3, 1)
    with pytest.raises(tf.errors.InvalidArgumentError):
        decoded_images(tf.constant([_file(picture, "PNG")[:60]]), (2, 3, 1))


def _saved(picture, kind, **options):
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def test_each_kind_of_image_that_ingest_accepts_shows_the_same_pixels():
    import tensorflow as tf

    from slipway.components.ingest.image_files import find_problem
    from slipway.components.ingest.source_limits import SourceLimits
    from slipway.components.trainer.pixels import decoded_images

    picture = Image.fromarray(np.random.default_rng(1).integers(0, 256, (12, 10, 3), dtype=np.uint8))
    turned = [picture.rotate(90)]
    modes = {
        "PNG": ("1", "L", "LA", "P", "RGB", "RGBA"),
        "JPEG": ("L", "RGB", "CMYK"),
        "GIF": ("L", "P"),
        "BMP": ("1", "L", "P", "RGB", "RGBA"),
        "WEBP": ("RGB",),
        "TIFF": ("RGB",),
    }
    files = {(kind, mode): _saved(picture.convert(mode), kind) for kind in modes for mode in modes[kind]}
    files["PNG", "few colours"] = _saved(picture.quantize(4), "PNG", bits=2)
    files["PNG", "transparent"] = _saved(picture.convert("P"), "PNG", transparency=3)
    files["PNG", "animated"] = _saved(picture, "PNG", save_all=True, append_images=turned)
    files["JPEG", "progressive"] = _saved(picture, "JPEG", progressive=True)
    files["JPEG", "two pictures"] = _saved(picture, "MPO", save_all=True, append_images=turned)
    files["GIF", "animated"] = _saved(picture, "GIF", save_all=True, append_images=turned)
    accepted = {
        key: data for key, data in files.items() if not find_problem(data, name="", limits=SourceLimits())
    }
    assert set(files) - set(accepted) == {
        ("BMP", "1"), ("BMP", "P"), ("WEBP", "RGB"), ("TIFF", "RGB")
    }  # fmt: skip
    shown = decoded_images(tf.constant(list(accepted.values())), (12, 10, 3)).numpy()
    for (kind, mode), pixels in zip(accepted, shown, strict=True):
        with Image.open(io.BytesIO(accepted[kind, mode])) as image:
            meant = np.asarray(image.convert("RGB")).astype(int)
        # Decoders of JPEG may round differently.
        assert np.abs(pixels - meant).max() <= (8 if kind == "JPEG" else 0), (kind, mode)


@pytest.mark.parametrize("kept", ["memory", "file"])
def test_images_stay_bytes_and_batches_hold_them(images, file, kept, tmp_path):
    from slipway.components.trainer.input.arrays import FileRows, eval_batches, load_rows
    from slipway.components.trainer.input.targets import Targets

    if kept == "memory":
        rows = load_rows((file,), FEATURES)
    else:
        FileRows.write(tmp_path / "train.rows", (file,), FEATURES)
        rows = FileRows(tmp_path / "train.rows", FEATURES)
    assert rows.row_bytes == 4 * 3 * 2 + 4
    [(features, label)] = eval_batches(rows, targets=Targets("y"), batch_size=10)
    assert features["image"].dtype.name == "uint8"
    np.testing.assert_array_equal(features["image"], images)
    assert label.numpy().ravel().tolist() == list(range(10))


def test_image_of_another_size_is_reported(file):
    from slipway.components.trainer.input.arrays import load_rows

    wrong = (Feature(name="image", dtype="uint8", shape=(2, 3, 2)), FEATURES[1])
    with pytest.raises(ComponentError, match="does not have the transformed features"):
        load_rows((file,), wrong)


def test_columns_of_bytes_are_images_only_where_they_are_named():
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    from slipway.components.trainer.transformed_features import features_of

    text = """
        feature { name: "image" type: BYTES shape {} }
        feature { name: "y" type: INT shape {} }
    """
    schema = text_format.Parse(text, schema_pb2.Schema())
    assert features_of(schema, images={"image": [4, 3, 2]}) == FEATURES
    with pytest.raises(ComponentError, match="dtype 'BYTES' is none of float32") as caught:
        features_of(schema)
    assert "train.images" in caught.value.hint
    with pytest.raises(
        ComponentError, match="names y, which is not a transformed column of bytes; there are im"
    ):
        features_of(schema, images={"y": [1, 1]})


def test_whole_number_of_a_request_beyond_32_bits_becomes_the_nearest_and_is_not_cut():
    import tensorflow as tf

    from slipway.components.trainer.pixels import model_input

    asked = tf.constant([[2**31], [-(2**31) - 1], [2**40 + 7], [2**31 - 1], [-5]], tf.int64)
    given = model_input(asked, Feature(name="x", dtype="int64"))
    assert given.dtype == tf.int32
    assert given.numpy().ravel().tolist() == [2**31 - 1, -(2**31), 2**31 - 1, 2**31 - 1, -5]
