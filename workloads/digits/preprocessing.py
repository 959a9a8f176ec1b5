"""Digits to features: the image as its raw bytes, the digit as it is."""

from typing import Any

import tensorflow as tf

from slipway.components.trainer.pixels import raw_pixels


def preprocessing_fn(inputs: dict[str, Any]) -> dict[str, tf.Tensor]:
    """Returns the image and the label of a batch of digits.

    Args:
        inputs: `image`, int64 [rows, 784], and `label`, int64 [rows, 1]; see schemas/digits.pbtxt.

    Returns:
        `image`, string [rows], which `train.images` in workload.yaml gives its shape, and `label`, int64
        [rows, 1].
    """
    return {"image": raw_pixels(inputs["image"]), "label": inputs["label"]}
