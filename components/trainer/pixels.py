"""Images as raw bytes: one string a row in the transformed examples, bytes again in a batch of them.

An image of 28x28 costs 3 us to read this way, 4 to 7 as a list of numbers, and 27 and more as a PNG.
"""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from components.trainer.features import Feature


def raw_pixels(images: tf.Tensor) -> tf.Tensor:
    """What a preprocessing_fn returns for an image, to be named in `train.images`.

    Args:
        images: whole numbers, [rows, ...]; what is below 0 or above 255, as in some request, becomes that.

    Returns:
        The bytes of each image, row by row, string [rows].
    """
    letters = tf.constant([bytes([value]) for value in range(256)])
    pixels = tf.reshape(tf.clip_by_value(images, 0, 255), [tf.shape(images)[0], -1])
    return tf.strings.reduce_join(tf.gather(letters, pixels), axis=1)


def model_input(column: tf.Tensor, feature: Feature) -> Any:
    """A transformed column as the model takes it: raw bytes are decoded, numbers get the model's type."""
    if feature.dtype == "uint8":
        return decoded_pixels(column, feature.shape)
    return tf.cast(column, feature.model_dtype)


def decoded_pixels(strings: tf.Tensor, shape: Sequence[int]) -> Any:
    """The images in a whole batch of strings.

    Args:
        strings: as `raw_pixels` returns them, [rows] or [rows, 1].
        shape: of one image, [height, width, channels].

    Returns:
        uint8 [rows, *shape]; running it fails where a string has another length than the shape asks for.
    """
    pixels = tf.io.decode_raw(tf.reshape(strings, [-1]), tf.uint8)
    return tf.reshape(tf.ensure_shape(pixels, [None, math.prod(shape)]), [-1, *shape])
