"""The input of an image model: the image feature, its shape, and its pixels scaled to about 0 .. 1."""

import math
from collections.abc import Mapping, Sequence

import keras

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature
from slipway.components.trainer.models.augmentation import augmented

BYTE_SCALE = 1 / 255
"""The factor for integer pixels, which are bytes."""


def image_input(
    features: Mapping[str, Feature],
    *,
    shape: Sequence[int] | None,
    scale: float | None,
    augment: Mapping[str, object] | None = None,
) -> tuple[dict[str, keras.KerasTensor], keras.KerasTensor]:
    """Return the input for the only feature, an image, and its pixels.

    Args:
        features: the model's inputs by name; exactly one.
        shape: [height, width] or [height, width, channels] of the image if the feature is a flat list of its
            pixels; None: the feature's own shape.
        scale: the factor of the pixels, > 0; None: 1/255 for integers, 1 for floats.
        augment: fields of `augmentation.Augmentation`; None: images stay as they are.

    Returns:
        The inputs by name, and float pixels [rows, height, width, channels].

    Raises:
        ComponentError: there is not exactly one feature, or its shape does not match.
    """
    if len(features) != 1:
        raise ComponentError(
            f"an image model takes one feature, the image; there are {', '.join(sorted(features))}",
            hint="let preprocessing_fn return the image and the label only",
        )
    [(name, feature)] = features.items()
    size = tuple(shape or feature.shape)
    if len(size) not in (2, 3) or math.prod(size) != math.prod(feature.shape):
        raise ComponentError(
            f"feature {name} of shape {feature.shape} is not an image of shape {size}",
            hint="set train.hyperparameters.image_shape to [height, width] or [height, width, channels]",
        )
    if scale is None:
        scale = 1.0 if feature.dtype == "float32" else BYTE_SCALE
    entry = keras.Input(feature.shape, dtype=feature.model_dtype, name=name)
    pixels = keras.layers.Reshape(size if len(size) == 3 else (*size, 1))(entry)
    return {name: entry}, augmented(keras.layers.Rescaling(scale)(pixels), augment)
