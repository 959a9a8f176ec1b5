"""A small convolutional network for images: handwriting, icons, anything up to about 64 pixels wide."""

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
        filters: of each pair of convolutions; the image is halved after each pair.
        units: of the dense layer.
        dropout: share of the dense layer's inputs and outputs that a step drops, 0 .. 1.
        learning_rate: of Adam.
    """

    classes: int = 10
    image_shape: tuple[int, ...] | None = None
    scale: float | None = None
    augment: Mapping[str, object] | None = None
    filters: tuple[int, ...] = (16, 32)
    units: int = 64
    dropout: float = 0.3
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
    for filters in settings.filters:
        hidden = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(hidden)
        hidden = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(hidden)
        hidden = keras.layers.MaxPooling2D(padding="same")(hidden)
    hidden = keras.layers.Dropout(settings.dropout)(keras.layers.Flatten()(hidden))
    hidden = keras.layers.Dense(settings.units, activation="relu")(hidden)
    hidden = keras.layers.Dropout(settings.dropout)(hidden)
    return finish(inputs, hidden, classes=settings.classes, learning_rate=settings.learning_rate)
