"""The digits preprocessing: the image becomes raw bytes, the label stays as it is."""

from typing import Any

import tensorflow as tf

from slipway.components.trainer.pixels import raw_pixels


def preprocessing_fn(inputs: dict[str, Any]) -> dict[str, tf.Tensor]:
    """Return the image and the label of a batch of digits.

    Args:
        inputs: `image`, int64 [rows, 784], and `label`, int64 [rows, 1]; see schemas/digits.pbtxt.

    Returns:
        `image`, string [rows], whose shape is set by `train.images` in workload.yaml, and `label`, int64
        [rows, 1].
    """
    return {"image": raw_pixels(inputs["image"]), "label": inputs["label"]}
