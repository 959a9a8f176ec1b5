"""Augments images during training, on the device, within the training step.

Outside of training the layers do nothing, so serving does not augment. Keras' own layers that move an image
do not compile under XLA with TensorFlow (3.15), so not for a TPU. Here, moving is two matrix products, which
are what a TPU is fastest at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from slipway.components.errors import ComponentError


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """The hyperparameter `augment` of an image model.

    Attributes:
        shift: the largest shift, as a share of an image's height and width, 0 .. 0.5.
        zoom: the largest enlargement or reduction, 0 .. 0.5.
        flip: whether to swap left and right in half of the images. Not for digits and letters.
        brightness: the most that is added to pixels, which range from 0 to 1; 0 .. 1.
        contrast: the largest change of contrast, 0 .. 1.

    Raises:
        ComponentError: a value is out of range.
    """

    shift: float = 0.0
    zoom: float = 0.0
    flip: bool = False
    brightness: float = 0.0
    contrast: float = 0.0

    def __post_init__(self) -> None:
        for name, most in (("shift", 0.5), ("zoom", 0.5), ("brightness", 1.0), ("contrast", 1.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise ComponentError(
                    f"train.hyperparameters.augment.{name} ({value!r}) must be a number from 0 to {most:g}"
                )


def augmented(pixels: Any, settings: Mapping[str, Any] | None) -> Any:
    """Add the layers that the settings ask for.

    Args:
        pixels: float, [rows, height, width, channels].
        settings: fields of `Augmentation`; None: none.

    Raises:
        ComponentError: a field is unknown, or a value is out of range.
    """
    unknown = set(settings or {}) - set(Augmentation.__dataclass_fields__)
    if unknown:
        raise ComponentError(
            f"train.hyperparameters.augment does not know {', '.join(sorted(unknown))}",
            hint=f"it knows {', '.join(Augmentation.__dataclass_fields__)}",
        )
    asked = Augmentation(**(settings or {}))
    if asked.flip:
        pixels = keras.layers.RandomFlip("horizontal")(pixels)
    if asked.shift or asked.zoom:
        pixels = RandomMove(shift=asked.shift, zoom=asked.zoom)(pixels)
    if asked.brightness:
        pixels = keras.layers.RandomBrightness(asked.brightness, value_range=(0.0, 1.0))(pixels)
    if asked.contrast:
        pixels = keras.layers.RandomContrast(asked.contrast, value_range=(0.0, 1.0))(pixels)
    return pixels


@keras.saving.register_keras_serializable(package="slipway")
class RandomMove(keras.layers.Layer):  # type: ignore[misc]
    """Moves and zooms each image by random amounts, with linear interpolation; uncovered pixels are 0.

    Args:
        shift: the largest shift to each side, as a share of height and width.
        zoom: the largest share by which an image grows or shrinks about its middle.
    """

    def __init__(self, *, shift: float, zoom: float, **more: Any) -> None:
        super().__init__(**more)
        self.shift = shift
        self.zoom = zoom
        self.seed_generator = keras.random.SeedGenerator()

    def call(self, pixels: Any, training: bool = False) -> Any:
        """Return the images, moved if in training.

        Args:
            pixels: float, [rows, height, width, channels].
        """
        if not training:
            return pixels
        rows, (height, width) = keras.ops.shape(pixels)[0], pixels.shape[1:3]
        scale = 1.0 + self._random(rows, self.zoom)
        vertical = _sampling(height, scale, self._random(rows, self.shift * height))
        horizontal = _sampling(width, scale, self._random(rows, self.shift * width))
        values = keras.ops.cast(pixels, "float32")
        moved = keras.ops.einsum("byi,bijc->byjc", vertical, values)
        return keras.ops.cast(keras.ops.einsum("bxj,byjc->byxc", horizontal, moved), self.compute_dtype)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the images' own shape."""
        return input_shape

    def get_config(self) -> dict[str, object]:
        """Return the layer's arguments, for Keras."""
        return {**super().get_config(), "shift": self.shift, "zoom": self.zoom}

    def _random(self, rows: Any, most: float) -> Any:
        return keras.random.uniform((rows, 1, 1), -most, most, dtype="float32", seed=self.seed_generator)


def _sampling(size: int, scale: Any, shift: Any) -> Any:
    """Return interpolation weights from each old position to each new one, [rows, size, size].

    Args:
        size: positions along this side.
        scale: old positions per new one, [rows, 1, 1].
        shift: in old positions, [rows, 1, 1].
    """
    places = keras.ops.arange(size, dtype="float32")
    middle = (size - 1) / 2
    sources = (places[None, :, None] - middle) * scale + middle + shift
    return keras.ops.maximum(0.0, 1.0 - keras.ops.abs(sources - places[None, None, :]))
