"""Reads images from one folder per class: an example holds the encoded bytes and the folder's name."""

import io
import shlex
import warnings
from collections.abc import Iterator
from pathlib import PurePosixPath

import pyarrow as pa
from PIL import Image, UnidentifiedImageError
from PIL.ImageFile import ImageFile

from slipway.components.image_sizes import MOST_SCANS, has_too_many_scans
from slipway.components.ingest.blocks import Block, FileError, InputFile, Place, Reject
from slipway.components.ingest.column_types import Columns, ColumnType
from slipway.components.ingest.image_damage import (
    find_damage,
    frame_pixels,
    gif_colours,
    no_image,
    odd_kind,
    other_image,
)
from slipway.components.ingest.options import IMAGE, Options
from slipway.components.ingest.source_limits import TOO_LARGE, SourceLimits

PILLOW_FORMATS = ("JPEG", "PNG", "GIF", "BMP")
"""Pillow's names for the formats that TensorFlow decodes. For others, Pillow may start programs, such as
Ghostscript for EPS."""
_UNREADABLE = "unreadable image"
_JPEGS = ("JPEG", "MPO")


def infer(file: InputFile, options: Options, known: Columns) -> dict[str, ColumnType]:  # noqa: ARG001
    """Return the columns, the same for each image: its bytes, and its class as text."""
    return {IMAGE: ColumnType.TEXT, options.label: ColumnType.TEXT}


def read(file: InputFile, options: Options, columns: Columns) -> Iterator[Block]:  # noqa: ARG001
    """Yield a block with the image, or with a reject if the image is not valid.

    Raises:
        FileError: the file cannot be opened.
    """
    label = PurePosixPath(file.name).parent.name
    limits = options.limits
    try:
        with file.path.open("rb") as stream:
            data = stream.read(limits.decoded_bytes + 1)
    except OSError as error:
        raise FileError(f"{file.name} cannot be read: {error.strerror}") from error
    place = Place(None, 0, data)
    if problem := find_problem(data, name=file.name, limits=limits):
        rejects = [Reject(problem[0], place, detail=problem[1])]
        yield Block(rows=0, columns={}, rejects=rejects, find=lambda _: place, position=len(data))
        return
    image, name = pa.array([data], pa.large_binary()), pa.array([label.encode()], pa.large_binary())
    values = {IMAGE: image, options.label: name}
    yield Block(rows=1, columns=values, find=lambda _: place, has_examined_images=True, position=len(data))


def find_problem(data: bytes, *, name: str, limits: SourceLimits) -> tuple[str, str] | None:
    """Describe why TensorFlow's decoder would not decode the bytes completely and correctly.

    Args:
        data: the file's bytes; for a file above `limits.decoded_bytes`, one byte more than that is enough.

    Returns:
        A reason, by which rejected images are counted, and what was found; None if nothing is wrong.
    """
    if len(data) > limits.decoded_bytes:
        return TOO_LARGE, f"{limits.exceeded('decoded_bytes')}"
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", Image.DecompressionBombWarning
        )  # images that are too large are reported below
        try:
            with Image.open(io.BytesIO(data), formats=PILLOW_FORMATS) as image:
                return _problem_of(image, data, name, limits)
        except UnidentifiedImageError:
            if kind := other_image(data):
                return _UNREADABLE, f"{kind}; {_remedy(name)}"
            return _UNREADABLE, f"{no_image(data)}, not an image" if no_image(data) else "of no known format"
        except MemoryError:
            raise
        except Exception as error:  # any kind, since the bytes are untrusted
            return _UNREADABLE, str(error)[:120] or type(error).__name__


def _problem_of(image: ImageFile, data: bytes, name: str, limits: SourceLimits) -> tuple[str, str] | None:
    """Describe the problem with an image whose header can be read; None if there is none."""
    kind = str(image.format)
    width, height = image.size
    if width * height > limits.image_pixels:
        return TOO_LARGE, f"{width:,}x{height:,} pixels, {limits.exceeded('image_pixels')}"
    if kind in _JPEGS and has_too_many_scans(data):
        return TOO_LARGE, f"more than {MOST_SCANS} scans; {_remedy(name)}"
    if why := find_damage(data, kind):
        return _UNREADABLE, why
    if kind == "GIF" and (pixels := frame_pixels(data)) > limits.image_pixels:
        return TOO_LARGE, f"{pixels:,} pixels in all frames, {limits.exceeded('image_pixels')}"
    other = odd_kind(data) if kind in ("GIF", "BMP") else ""
    if kind == "BMP" and image.mode == "P":
        other = "a BMP with a palette"
    if other:
        return _UNREADABLE, f"{other}; {_remedy(name)}"
    image.load()
    if kind == "GIF" and image.getextrema()[1] >= gif_colours(data):
        return _UNREADABLE, "a pixel whose colour is not in its palette"
    return None


def _remedy(name: str) -> str:
    """Return the command that converts an image to PNG in place."""
    quoted = shlex.quote(name)
    return f"convert it: magick {quoted} png:{quoted}"
