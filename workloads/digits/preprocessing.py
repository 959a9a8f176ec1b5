"""Digits to features: the image as fractions of black, the digit as it is."""

from typing import Any

import tensorflow as tf

SIDE = 28
WHITE_TO_BLACK = 255.0


def preprocessing_fn(inputs: dict[str, Any]) -> dict[str, tf.Tensor]:
    """Returns the image and the label of a batch of digits.

    Args:
        inputs: `image`, int64 [rows, 784], and `label`, int64 [rows, 1]; see schemas/digits.pbtxt.

    Returns:
        `image`, float32 [rows, 28, 28, 1] from 0 to 1, and `label`, int64 [rows, 1].
    """
    shades = tf.cast(inputs["image"], tf.float32) / WHITE_TO_BLACK
    return {"image": tf.reshape(shades, [-1, SIDE, SIDE, 1]), "label": inputs["label"]}
