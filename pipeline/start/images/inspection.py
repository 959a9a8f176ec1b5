"""Examines images: counts per class, sizes, colours, and which images cannot be read."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from slipway.components.ingest.blocks import InputFile
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.formats import FORMATS
from slipway.components.ingest.image_files import PILLOW_FORMATS
from slipway.components.ingest.npz_images import image_shapes
from slipway.components.ingest.options import Options
from slipway.components.ingest.suffixes import is_hidden
from slipway.pipeline.errors import UsageError

# Each examined image is decoded once, which takes some milliseconds.
MOST_IMAGES = 20_000
_NAMED = 5
_ORIENTATION, _TURNED = 0x0112, range(2, 9)  # EXIF; 1 is upright, and 0 and others say nothing
_TRAIN_PARTS = ("train", "training")
_EVAL_PARTS = ("val", "validation", "valid", "eval", "test", "testing")
_GREY_MODES = ("1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "F")
_OTHER_SUFFIXES = (".webp", ".tif", ".tiff", ".heic", ".avif", ".jp2", ".ppm")
# The name of the raw column that holds the class.
LABEL = "label"

Class = str | int


@dataclass(frozen=True, kw_only=True)
class ImageFacts:
    """The properties of the images.

    Attributes:
        file_format: "images" (files in folders) or "npz".
        classes: class -> number of readable images.
        sizes: (height, width) -> number of images.
        modes: "grey", "colour" or "colour with transparency" -> number of images.
        unreadable: (path, reason) of the first few images that cannot be read.
        unreadable_count: the number of all images that cannot be read.
        turned: the number of images that EXIF says to turn or to mirror when they are shown, such as photos
            of a phone.
        parts: the data's own names of the splits train and eval, if it is split already; else {}.
        lowest: the smallest pixel value in an npz.
        highest: the largest pixel value in an npz.
        has_fractions: whether an npz holds pixels as floats.
        has_whole_pixels: whether all of them are whole numbers nevertheless.
        ignored: a sentence about each part of the data that is not used.
    """

    file_format: str
    classes: Mapping[Class, int]
    sizes: Mapping[tuple[int, int], int]
    modes: Mapping[str, int]
    unreadable: tuple[tuple[str, str], ...] = ()
    unreadable_count: int = 0
    turned: int = 0
    parts: Mapping[str, str] = field(default_factory=dict)
    lowest: float = 0.0
    highest: float = 255.0
    has_fractions: bool = False
    has_whole_pixels: bool = True
    is_whole: bool = True
    ignored: tuple[str, ...] = ()

    @property
    def images(self) -> int:
        """The number of readable images."""
        return sum(self.classes.values())


def holds_images(path: Path) -> bool:
    """Whether the data is images: an npz, or a folder whose subfolders hold images."""
    if path.suffix.lower() == ".npz":
        return True
    return path.is_dir() and any(_is_image(file) for file in path.glob("*/*"))


def check_folder(path: Path) -> None:
    """Reject a folder whose images Ingest would not find.

    Raises:
        UsageError: the images have an unsupported format, or are not in a folder per class.
    """
    if not path.is_dir():
        return
    others = [file for file in (*path.glob("*"), *path.glob("*/*")) if file.suffix.lower() in _OTHER_SUFFIXES]
    if others:
        taken = ", ".join(FORMATS["images"].suffixes)
        raise UsageError(
            f"{path} holds {others[0].suffix} images; only {taken} are read.",
            hint="convert them, with ImageMagick: "
            f"mogrify -format png {shlex.quote(str(others[0].parent))}/*{others[0].suffix}",
        )
    if any(_is_image(file) for file in path.glob("*")) and not holds_images(path):
        raise UsageError(
            f"{path} holds images, but no folders of images, so their classes are not known.",
            hint="make a folder for each class, and move the images there: cats/1.jpg, dogs/1.jpg",
        )


def inspect_images(path: Path, *, most_images: int = MOST_IMAGES) -> ImageFacts:
    """Examine an npz or a folder for which `holds_images` is true or `existing_splits` is not empty.

    Args:
        path: the npz, or a folder with a subfolder for each class, or with train/ and test/ that hold these.
        most_images: the maximum number of images to decode, spread evenly over all.

    Raises:
        UsageError: the npz holds no images with integer classes.
        ComponentError: the npz cannot be read.
    """
    return _inspect_arrays(path) if path.suffix.lower() == ".npz" else _inspect_folder(path, most_images)


def existing_splits(path: Path) -> dict[str, str]:
    """Return the folders of data that is already split, as {"train": "train", "eval": "test"}; else {}."""
    if not path.is_dir():
        return {}
    parts = _parts(sorted(_folders(path)))
    return parts if all(any(map(_is_image, (path / part).glob("*/*"))) for part in parts.values()) else {}


def _inspect_folder(path: Path, most_images: int) -> ImageFacts:
    parts = existing_splits(path)
    tops = [path / part for part in parts.values()] if parts else [path]
    folders = [
        folder for top in tops for folder in sorted(top.iterdir()) if _is_taken(folder) and folder.is_dir()
    ]
    files = [
        file for folder in folders for file in sorted(folder.iterdir()) if _is_taken(file) and file.is_file()
    ]
    classes: Counter[Class] = Counter({folder.name: 0 for folder in folders})
    classes.update(file.parent.name for file in files)
    seen, turned, sizes, modes = 0, 0, Counter[tuple[int, int]](), Counter[str]()
    unreadable: list[tuple[str, str]] = []
    every = -(-len(files) // most_images) if files else 1
    for file in files[::every]:
        seen += 1
        if why := _why_unreadable(file):
            unreadable.append((str(file.relative_to(path)), why))
            classes[file.parent.name] -= 1
            continue
        with Image.open(file, formats=PILLOW_FORMATS) as image:
            sizes[image.height, image.width] += 1
            modes[_mode(image)] += 1
            turned += _is_turned(image)
    return ImageFacts(
        file_format="images",
        classes=dict(sorted(classes.items(), key=lambda item: str(item[0]))),
        sizes=sizes,
        modes=modes,
        unreadable=tuple(unreadable[:_NAMED]),
        unreadable_count=len(unreadable),
        turned=turned,
        parts=parts,
        is_whole=every == 1,
        ignored=tuple(_ignored(path, tops, folders)),
    )


def _ignored(path: Path, tops: list[Path], folders: list[Path]) -> Iterator[str]:
    if len(tops) > 1 and (others := sorted(_folders(path) - {top.name for top in tops})):
        yield f"{', '.join(others)} is left out: one folder is for training and one for evaluation."
    for top in tops:
        beside = [file for file in top.iterdir() if file.is_file() and _is_image(file)]
        if beside:
            images = "1 image lies" if len(beside) == 1 else f"{len(beside):,} images lie"
            yield f"{images} directly in {top.name}, such as {beside[0].name}: without a class folder."
    deeper = [
        folder for folder in folders if any(_is_taken(each) and each.is_dir() for each in folder.iterdir())
    ]
    if deeper:
        yield f"{deeper[0].name} contains folders, which are not read."


def _why_unreadable(file: Path) -> str:
    """Return Ingest's reason to reject the image; empty if Ingest accepts it."""
    blocks = FORMATS["images"].read(InputFile(name=str(file), path=file), Options(format="images"), {})
    return next((each.detail.rstrip(".") or each.reason for block in blocks for each in block.rejects), "")


def _mode(image: Image.Image) -> str:
    if image.mode in _GREY_MODES:
        return "grey"
    return "colour with transparency" if image.mode in ("RGBA", "PA", "RGBa") else "colour"


def _is_turned(image: Image.Image) -> bool:
    if "exif" not in image.info:  # in a PNG, Pillow would look for it behind the pixels, and decode these
        return False
    try:
        return image.getexif().get(_ORIENTATION) in _TURNED
    except Exception:  # it is damaged, which Pillow tells by a SyntaxError, among others
        return False


def _is_taken(path: Path) -> bool:
    """Whether Ingest finds the file or the folder; hidden ones are left out."""
    return not (path.name.startswith(".") or (path.is_file() and is_hidden(path.name, "*")))


def _is_image(path: Path) -> bool:
    return _is_taken(path) and path.suffix.lower() in FORMATS["images"].suffixes


def _folders(path: Path) -> set[str]:
    return {each.name for each in path.iterdir() if each.is_dir() and _is_taken(each)}


def _parts(names: list[str]) -> dict[str, str]:
    train = next((name for name in _TRAIN_PARTS if name in names), "")
    held = next((name for name in _EVAL_PARTS if name in names), "")
    is_split = train and held and set(names) <= {*_TRAIN_PARTS, *_EVAL_PARTS}
    return {"train": train, "eval": held} if is_split else {}


def _inspect_arrays(path: Path) -> ImageFacts:
    file, options = InputFile(name=path.name, path=path), Options(format="npz", label=LABEL)
    kinds = FORMATS["npz"].infer(file, options, {})
    if kinds[LABEL] != ColumnType.INT:
        raise UsageError(
            f"{path.name}: the classes (y_train) are fractions; they must be whole numbers.",
            hint="y.astype(numpy.uint8) before numpy.savez",
        )
    shapes = image_shapes(file, options.limits)
    pictures = {part: _picture(path.name, part, shape) for part, shape in shapes.items()}
    if len(set(pictures.values())) > 1:
        raise UsageError(
            f"{path.name}: its parts hold images of different sizes: {shapes}.",
            hint="save arrays of images of one size: [images, height, width, channels]",
        )
    height, width, channels = next(iter(pictures.values()))
    parts = _parts(sorted(shapes))
    classes: Counter[Class] = Counter()
    lowest, highest, has_whole_pixels = np.inf, -np.inf, True
    for block in FORMATS["npz"].read(file, options, kinds):
        if parts and block.part not in parts.values():
            continue
        classes.update(block.columns[LABEL].to_pylist())
        values = block.columns["image"].values.to_numpy(zero_copy_only=False)
        least, greatest = float(values.min()), float(values.max())
        lowest, highest = min(lowest, least), max(highest, greatest)
        if not np.isfinite([least, greatest]).all():
            raise UsageError(
                f"{path.name}: x_{block.part} holds pixels that are NaN or infinite.",
                hint="numpy.nan_to_num(x), or leave these images out, before numpy.savez",
            )
        has_whole_pixels = has_whole_pixels and bool(np.all(values == np.floor(values)))
    total = sum(classes.values())
    left_out = sorted(set(shapes) - set(parts.values())) if parts else []
    return ImageFacts(
        file_format="npz",
        classes=dict(sorted(classes.items())),
        sizes={(height, width): total},
        modes={"grey" if channels == 1 else "colour": total},
        parts=parts,
        lowest=lowest,
        highest=highest,
        has_fractions=kinds["image"] == ColumnType.FLOAT,
        has_whole_pixels=has_whole_pixels,
        ignored=tuple(
            f"x_{part} is left out: one part is for training, one for evaluation." for part in left_out
        ),
    )


def _picture(name: str, part: str, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return height, width and channels of one image, from the shape of an array of images."""
    if len(shape) == 3:
        return shape[1], shape[2], 1
    if len(shape) == 4 and shape[3] in (1, 3):
        return shape[1], shape[2], shape[3]
    side = round(shape[1] ** 0.5) if len(shape) == 2 else 0
    if side > 1 and side * side == shape[1]:
        return side, side, 1
    raise UsageError(
        f"{name}: x_{part} has the shape {list(shape)}, which is not an array of images.",
        hint="it must be [images, height, width], or [images, height, width, 3] in colour",
    )
