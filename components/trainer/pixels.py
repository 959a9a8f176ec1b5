"""Images as raw bytes: one string per row in the transformed examples, pixels again in a batch.

An image of 28x28 takes 3 us to read this way, 4 to 7 us as a list of numbers, and 27 us or more as a PNG.
"""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from slipway.components.trainer.features import Feature

_BEGINNINGS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM")
"""The first bytes of JPEG, PNG, GIF and BMP, the formats that TensorFlow decodes."""
_COLOURS = 3


def decoded_images(files: Any, shape: Sequence[int]) -> tf.Tensor:
    """Decode a column of image files and scale the images to one size, for `data.format: images`.

    Scaling ignores an image's proportions. Colours become grey, and grey becomes three equal colours, as
    `shape` requires. Only the first frame of an animation is used. A value without an image format's first
    bytes, as in some requests, becomes black; Ingest lets no such file pass.

    Args:
        files: the bytes of JPEG, PNG, GIF or BMP files, string [rows] or [rows, 1], dense or sparse.
        shape: of each returned image, [height, width, channels], with 1 or 3 channels.

    Returns:
        uint8 [rows, height, width, channels]; computing it fails if an image is damaged.
    """
    height, width, channels = shape
    size = (height, width)

    def picture(file: tf.Tensor) -> tf.Tensor:
        # GIF and BMP accept no number of channels
        decoded = tf.io.decode_image(file, expand_animations=False)
        scaled = tf.image.resize(decoded, size, antialias=True)
        is_grey = tf.shape(scaled)[-1] < _COLOURS
        colours = tf.cond(
            is_grey, lambda: tf.repeat(scaled[..., :1], _COLOURS, -1), lambda: scaled[..., :_COLOURS]
        )
        shown = tf.image.rgb_to_grayscale(colours) if channels == 1 else colours
        return tf.saturate_cast(tf.round(shown), tf.uint8)

    def one(file: tf.Tensor) -> tf.Tensor:
        known = [tf.strings.substr(file, 0, len(first)) == first for first in _BEGINNINGS]
        return tf.cond(
            tf.reduce_any(known), lambda: picture(file), lambda: tf.zeros([*size, channels], tf.uint8)
        )

    if isinstance(files, tf.SparseTensor):
        files = tf.sparse.to_dense(tf.SparseTensor(files.indices, files.values, [files.dense_shape[0], 1]))
    column = tf.reshape(files, [-1])
    return tf.map_fn(one, column, fn_output_signature=tf.TensorSpec([*size, channels], tf.uint8))


def raw_pixels(images: tf.Tensor) -> tf.Tensor:
    """Turn images into the bytes that a preprocessing_fn returns for a column of `train.images`.

    Args:
        images: whole numbers, [rows, ...]; values outside 0 .. 255, as in some requests, are clipped.

    Returns:
        The bytes of each image, row by row, string [rows].
    """
    rows = tf.reshape(tf.cast(tf.clip_by_value(images, 0, 255), tf.uint8), [tf.shape(images)[0], -1])
    # A TensorProto ends with its `tensor_content`, which are these bytes. Looking up and joining letters of a
    # table of 256 costs 3 to 13 times as much (28x28x1: 28 us an image, 224x224x3: 5 ms).
    messages = tf.map_fn(tf.io.serialize_tensor, rows, fn_output_signature=tf.string)
    length = tf.shape(rows)[1]
    return tf.strings.substr(messages, -length, length)


def model_input(column: tf.Tensor, feature: Feature) -> Any:
    """Return a transformed column as the model takes it: raw bytes decoded, numbers cast to its dtype.

    A whole number that int32 lacks, which training refuses, becomes the nearest that it has: a request may
    hold any.
    """
    if feature.dtype == "uint8":
        return decoded_pixels(column, feature.shape)
    if feature.may_exceed_int32:
        column = tf.clip_by_value(column, tf.int32.min, tf.int32.max)
    return tf.cast(column, feature.model_dtype)


def decoded_pixels(strings: tf.Tensor, shape: Sequence[int]) -> Any:
    """Return the images in a batch of strings.

    Args:
        strings: as `raw_pixels` returns them, [rows] or [rows, 1].
        shape: of one image, [height, width, channels].

    Returns:
        uint8 [rows, *shape]; computing it fails if a string's length does not match the shape.
    """
    pixels = tf.io.decode_raw(tf.reshape(strings, [-1]), tf.uint8)
    return tf.reshape(tf.ensure_shape(pixels, [None, math.prod(shape)]), [-1, *shape])
