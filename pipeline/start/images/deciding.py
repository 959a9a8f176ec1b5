"""Decides image size, network and training length for images, and why. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from slipway.components.counted_words import agreeing, counted, first_of
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.deciding import LEAST_ROWS
from slipway.pipeline.start.images.inspection import Class, ImageFacts
from slipway.pipeline.start.writing import bad_share_limit

Network = Literal["cnn", "residual"]

# The small network is made for images up to SMALL_SIDE pixels wide. Larger images are scaled down to
# _MOST_SIDE, at which a CPU trains the residual network on a thousand images in about a minute per epoch.
SMALL_SIDE = 64
_MOST_SIDE = 96
_LEAST_SIDE = 8
_MOST_CLASSES = 1000
_FEW_IMAGES = 20
_BYTE = 255
# Fractions up to here would become too few levels of grey if they were rounded as they are.
_FEW_LEVELS = 32
_RARE_CLASS = 0.5  # share of the images that each class would have if all were of equal size


@dataclass(frozen=True, kw_only=True)
class ImagePlan:
    """The plan from which all files are written.

    Attributes:
        label: name of the raw column that holds the class.
        classes: the classes in the order of their codes.
        height: height of the model's input, in pixels.
        width: width of the model's input, in pixels.
        channels: 1 (grey) or 3 (colour).
        network: the name of a module in `slipway.components.trainer.models`.
        max_bad_share: `data.max_bad_share`; None keeps the default.
        reasons: the reasons for "size", "colours" and "network".
        notes: notes for the user, a sentence each.
    """

    facts: ImageFacts
    label: str
    classes: tuple[Class, ...]
    height: int
    width: int
    channels: int
    network: Network
    batch_size: int
    epochs: int
    max_bad_share: float | None
    reasons: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def task(self) -> Literal["binary", "multiclass"]:
        """The kind of prediction: one probability, or one for each class."""
        return "binary" if len(self.classes) == 2 else "multiclass"


def decide(facts: ImageFacts, *, label: str, data: str) -> ImagePlan:
    """Decide image size, colours, network and training length.

    Args:
        label: name of the raw column that holds the class.
        data: the data as named by the user, for messages.

    Raises:
        UsageError: there are too few readable images, or fewer than two or too many classes.
    """
    classes = tuple(name for name, count in facts.classes.items() if count)
    _check_classes(facts, classes, data)
    height, width, size_why = _size(facts)
    channels, colour_why = _channels(facts)
    network: Network = "cnn" if max(height, width) <= SMALL_SIDE else "residual"
    train = max(facts.images * 2 // 3, 1)
    batch_size = 128 if train >= 1000 else 32 if train >= 100 else 8
    epochs = min(max(_updates(height * width) * batch_size // train, 5), 100)
    return ImagePlan(
        facts=facts,
        label=label,
        classes=classes,
        height=height,
        width=width,
        channels=channels,
        network=network,
        batch_size=batch_size,
        epochs=epochs,
        max_bad_share=bad_share_limit(facts.unreadable_count, facts.images + facts.unreadable_count),
        reasons={"size": size_why, "colours": colour_why, "network": _NETWORKS[network]},
        notes=tuple(_notes(facts)),
    )


_NETWORKS = {
    "cnn": "a small convolutional network, made for images up to 64 pixels wide",
    "residual": "a residual network, as the images are larger than 64 pixels",
}


def _updates(pixels: int) -> int:
    """Return how many updates a training has: 1,000 up to 32 x 32 pixels, where they are cheap, fewer above.

    With shifts and zooms, the small network goes on learning that long. Of 1,080 noisy letters of 12 classes
    it knew 47% and 53% (two seeds) after 250 updates without them, 57% and 64% after 750, 79% and 82% after
    750 with them, and 87% and 86% after 1,500; of 1,797 digits 97% to 99% each time.
    """
    return min(max(250 * 64 * 64 // pixels, 250), 1000)


def pixel_range(facts: ImageFacts) -> tuple[float, float] | None:
    """Return the pixels of an npz that become 0 and 255 of a byte; None if all of them are bytes already."""
    least, greatest = facts.lowest, facts.highest
    if least < 0 or greatest > _BYTE:
        return least, greatest if greatest > least else least + 1
    if facts.has_fractions and greatest <= 1:
        return 0.0, 1.0
    return None if facts.has_whole_pixels or greatest > _FEW_LEVELS else (0.0, greatest)


def _check_classes(facts: ImageFacts, classes: Sequence[Class], data: str) -> None:
    if len(classes) > _MOST_CLASSES:
        raise UsageError(
            f"{data} holds {len(classes):,} classes; `new` handles at most {_MOST_CLASSES:,}.",
            hint="name a folder that has a folder for each class, or copy workloads/digits",
        )
    if len(classes) > 1 and (facts.parts or facts.images >= LEAST_ROWS):
        return
    if len(classes) > 1:
        raise UsageError(
            f"{data}: {counted(facts.images, 'image')} {agreeing(facts.images, 'are')} too few to train on "
            f"some and evaluate on others: at least {LEAST_ROWS} are needed.",
            hint="collect more images first; an evaluation is meaningful from a few hundred per class on",
        )
    found = f"images of one class, {classes[0]}" if classes else "no image that can be read"
    broken = f" ({facts.unreadable_count:,} cannot be read)" if facts.unreadable_count else ""
    raise UsageError(
        f"{data} holds {found}{broken}: there is nothing to distinguish.",
        hint="it must have a folder for each class, with its images: cats/1.jpg, dogs/1.jpg"
        if facts.file_format == "images"
        else "y_train must hold at least two classes",
    )


def _size(facts: ImageFacts) -> tuple[int, int, str]:
    if len(facts.sizes) == 1:
        [(height, width)] = facts.sizes
        words = f"all are {height}x{width}"
    else:
        height, width = (_median({size[i]: count for size, count in facts.sizes.items()}) for i in (0, 1))
        sides = [side for size in facts.sizes for side in size]
        words = f"from {min(sides)} to {max(sides)} pixels, half below {height}x{width}; scaled to one size"
    if facts.file_format == "npz":
        return height, width, words  # arrays are not scaled
    if (longest := max(height, width)) > SMALL_SIDE:
        shrink = min(_MOST_SIDE / longest, 1.0)
        height, width = (max(round(side * shrink), _LEAST_SIDE) for side in (height, width))
        words += "; smaller is faster, larger may be better" if shrink < 1 else ""
    return max(height, _LEAST_SIDE), max(width, _LEAST_SIDE), words


def _median(counts: Mapping[int, int]) -> int:
    half, seen = sum(counts.values()) / 2, 0
    for side in sorted(counts):
        seen += counts[side]
        if seen >= half:
            return side
    raise ValueError("no sizes")


def _channels(facts: ImageFacts) -> tuple[int, str]:
    counted = ", ".join(f"{count:,} {mode}" for mode, count in sorted(facts.modes.items()))
    if set(facts.modes) == {"grey"}:
        return 1, "all are grey"
    return 3, "all are in colour" if set(facts.modes) == {"colour"} else f"{counted}: all read as colour"


def _notes(facts: ImageFacts) -> list[str]:
    notes = list(facts.ignored)
    if (pixels := pixel_range(facts)) not in (None, (0.0, 1.0)):
        least, greatest = (f"{each:g}" for each in pixels or ())
        notes.append(
            f"The pixels run from {least} to {greatest}: these become 0 and 255, the least and the greatest "
            "byte, and so do values beyond them."
        )
    if facts.unreadable_count:
        some = "; ".join(f"{name} ({why})" for name, why in facts.unreadable)
        more = ", and others" if facts.unreadable_count > len(facts.unreadable) else ""
        images = counted(facts.unreadable_count, "image")
        notes.append(f"{images} cannot be read: {some}{more}. A run quarantines such images.")
    if facts.turned:
        notes.append(
            f"{counted(facts.turned, 'image')} {agreeing(facts.turned, 'are')} stored on the side, upside "
            "down or mirrored: viewers turn them as EXIF says, TensorFlow does not. To turn such images in "
            "place, also those to predict: magick mogrify -auto-orient FOLDER/*/*.jpg"
        )
    if empty := [str(name) for name, count in facts.classes.items() if not count]:
        notes.append(f"Not a class, because none of its images can be read: {', '.join(empty)}.")
    if not facts.is_whole:
        notes.append("Not all images were opened: more of them may be unreadable.")
    counts = {name: count for name, count in facts.classes.items() if count}
    rarest = min(counts, key=lambda name: counts[name])
    commonest = max(counts, key=lambda name: counts[name])
    if counts[rarest] < _RARE_CLASS * facts.images / len(counts):
        notes.append(
            f"The classes are uneven: {counts[commonest]:,} images of {commonest}, "
            f"{counts[rarest]:,} of {rarest}. Accuracy says little about the rare ones; look at the slices."
        )
    if counts[rarest] < _FEW_IMAGES:
        few = [str(name) for name, count in counts.items() if count < _FEW_IMAGES]
        notes.append(
            f"Fewer than {_FEW_IMAGES} images of {first_of(few, 5)}: too few to learn anything reliable."
        )
    return notes
