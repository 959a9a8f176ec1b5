"""Finds images among values of bytes that are small in a file, and large or endless once decoded. Pure.

Images in folders are examined as a whole, see `image_files.py`. Here only what their headers say counts:
whether a model decodes the bytes of a column is not known.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.image_sizes import (
    GIF_BEGIN,
    JPEG_BEGIN,
    MOST_SCANS,
    PNG_BEGIN,
    WEBP_BEGIN,
    decoded_pixels,
    has_too_many_scans,
    is_webp_animation,
)
from slipway.components.ingest.example_message import parse_example
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.ingest.string_buffers import offsets, utf8_bytes

_BEGINS = (PNG_BEGIN, GIF_BEGIN, JPEG_BEGIN, WEBP_BEGIN)
# Of the first three bytes of a value, which stand there in an image of one of the formats.
_BYTES_THERE = np.zeros((3, 256), dtype=np.bool_)
for _begin in _BEGINS:
    _BYTES_THERE[range(3), list(_begin[:3])] = True
_LEAST_BYTES = 20  # shorter ones do not even say their size
# That are skipped to find an image's size, in half a second. Parquet repeats a long value for a few bytes.
_MOST_PARTS = 1_000_000


class _TooManyPartsError(Exception):
    """An image has more than `_MOST_PARTS` parts before its size is known."""


def image_problem(data: bytes, limits: SourceLimits) -> str:
    """Describe why an image should not be decoded; "" for any other, and for bytes that are no image."""
    step = _countdown()
    try:
        if is_webp_animation(data):
            return "a WebP of several frames, for which TensorFlow writes beyond its memory"
        if data.startswith(JPEG_BEGIN) and has_too_many_scans(data, step=step):
            return f"a JPEG of more than {MOST_SCANS} scans"
        pixels = decoded_pixels(data, step=step)
    except _TooManyPartsError:
        return f"an image of more than {_MOST_PARTS:,} parts before its pixels"
    is_large = pixels > limits.image_pixels
    return f"an image of {pixels:,} pixels, {limits.exceeded('image_pixels')}" if is_large else ""


def _countdown() -> Callable[[], None]:
    left = iter(range(_MOST_PARTS))

    def step() -> None:
        if next(left, None) is None:
            raise _TooManyPartsError

    return step


def image_problems(values: pa.Array, limits: SourceLimits) -> dict[int, str]:
    """Return the rows of a column with such an image, each with what is wrong with its first.

    Args:
        values: one value per row, large_binary, or a large list of them; of another type there are none.
    """
    is_list = pa.types.is_large_list(values.type)
    flat = values.flatten() if is_list else values
    if not pa.types.is_large_binary(flat.type):
        return {}
    found: dict[int, str] = {}
    for place in _places_of_images(flat).tolist():
        if problem := image_problem(flat[place].as_py() or b"", limits):
            found[place] = problem
    if not is_list:
        return found
    parents = pc.list_parent_indices(values)
    return {parents[place].as_py(): found[place] for place in sorted(found, reverse=True)}


def _places_of_images(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return where values begin as images do, and a few others; all columns of texts come by here."""
    bounds, data = offsets(values), utf8_bytes(values)
    places = np.flatnonzero(bounds[1:] - bounds[:-1] >= _LEAST_BYTES)
    for at, is_known in enumerate(_BYTES_THERE):
        if not len(places):  # as in nearly all columns
            break
        places = places.compress(is_known.take(data.take(bounds.take(places) + at)))
    return places


def problem_in_example(record: bytes, limits: SourceLimits) -> tuple[str, str] | None:
    """Return the first feature of a serialised tf.Example with such an image, and what is wrong with it."""
    if not any(begin in record for begin in _BEGINS):  # parsing it again would take far longer
        return None
    example = parse_example(record)
    for name, feature in example.features.feature.items() if example is not None else ():
        for value in feature.bytes_list.value:
            if problem := image_problem(value, limits):
                return name, problem
    return None
