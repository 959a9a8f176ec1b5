"""A residual network for images, for tasks where the small CNN is not enough.

Source of the block: He, Zhang, Ren, Sun, "Identity Mappings in Deep Residual Networks", 2016 (figure 4e:
normalisation and activation before each convolution).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from slipway.components.trainer.features import Feature
from slipway.components.trainer.models.head import finish
from slipway.components.trainer.models.image import image_input


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters that `train.hyperparameters` may set.

    Attributes:
        classes: the number of classes of the label, >= 2.
        image_shape: [height, width] or [height, width, channels] if the feature is a flat list of pixels.
        scale: the factor of the pixels; None: 1/255 for integers, 1 for floats.
        augment: how to change images during training, see `augmentation.Augmentation`.
        filters: of each stage; the image is halved between stages.
        blocks: residual blocks per stage, >= 1.
        learning_rate: of Adam.
    """

    classes: int = 10
    image_shape: tuple[int, ...] | None = None
    scale: float | None = None
    augment: Mapping[str, object] | None = None
    filters: tuple[int, ...] = (16, 32, 64)
    blocks: int = 2
    learning_rate: float = 1e-3


def build_model(features: Mapping[str, Feature], hyperparameters: Mapping[str, Any]) -> keras.Model:
    """Return the compiled model; see `head.finish` for its outputs.

    Args:
        features: one image, [height, width], [height, width, channels] or flat, see `image_shape`.
        hyperparameters: fields of `Hyperparameters`; missing ones keep their defaults.

    Raises:
        ComponentError: the feature is not an image of that shape.
    """
    settings = Hyperparameters(**hyperparameters)
    inputs, hidden = image_input(
        features, shape=settings.image_shape, scale=settings.scale, augment=settings.augment
    )
    hidden = keras.layers.Conv2D(settings.filters[0], 3, padding="same", use_bias=False)(hidden)
    for stage, filters in enumerate(settings.filters):
        for block in range(settings.blocks):
            strides = 2 if stage > 0 and block == 0 else 1
            hidden = _block(hidden, filters=filters, strides=strides)
    hidden = keras.layers.GlobalAveragePooling2D()(_normalised(hidden))
    return finish(inputs, hidden, classes=settings.classes, learning_rate=settings.learning_rate)


def _block(before: Any, *, filters: int, strides: int) -> Any:
    """Apply two convolutions, and add the input to their result."""
    hidden = _normalised(before)
    # The first block of a stage changes the shape, so the shortcut must change too.
    changes = strides > 1 or before.shape[-1] != filters
    shortcut = keras.layers.Conv2D(filters, 1, strides=strides, use_bias=False)(hidden) if changes else before
    hidden = keras.layers.Conv2D(filters, 3, strides=strides, padding="same", use_bias=False)(hidden)
    hidden = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(_normalised(hidden))
    return keras.layers.Add()([shortcut, hidden])


def _normalised(values: Any) -> Any:
    # The momentum suits trainings of some hundred steps; with Keras' 0.99 the first ones would still count.
    return keras.layers.ReLU()(keras.layers.BatchNormalization(momentum=0.9)(values))
