"""Reads arrays of images from an npz file like Keras' MNIST file: x_train, y_train, x_test, y_test.

A few images are read at a time, so the archive may be larger than memory. Pickled objects are rejected.
"""

import io
import math
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slipway.components.ingest.blocks import Block, FileError, InputFile, Place
from slipway.components.ingest.column_types import Columns, ColumnType
from slipway.components.ingest.options import IMAGE, Options
from slipway.components.ingest.source_limits import SourceLimits

_BLOCK_VALUES = 1 << 20
_MOST_HEADER_BYTES = 64 * 1024  # numpy writes 128 for a plain array
_METHODS = (
    zipfile.ZIP_STORED,
    zipfile.ZIP_DEFLATED,
)  # the methods that numpy writes; others may need much memory
# What zipfile and numpy raise for archives that are damaged, encrypted or of an unknown kind; the tokenizer's
# error is raised for a header with unclosed brackets.
_BROKEN = (
    zipfile.BadZipFile, zlib.error, tokenize.TokenError, EOFError, OSError, RuntimeError, ValueError,
)  # fmt: skip
_MOST_WORDS = 200  # numpy's messages repeat the whole header


@dataclass(frozen=True)
class _Array:
    """The header of an array in the archive."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def infer(file: InputFile, options: Options, known: Columns) -> dict[str, ColumnType]:  # noqa: ARG001
    """Return two columns, the pixels and the class, each of whole numbers or fractions as in the arrays.

    Raises:
        FileError: arrays are missing, their shapes do not match, or they hold something other than numbers.
    """
    kinds: dict[str, ColumnType] = {IMAGE: ColumnType.INT, options.label: ColumnType.INT}
    with _opened(file) as archive:
        for part in _parts(file, archive):
            for feature, array in zip(kinds, _pair(file, archive, part, options.limits), strict=True):
                if array.dtype.kind == "f":
                    kinds[feature] = ColumnType.FLOAT
    return kinds


def read(file: InputFile, options: Options, columns: Columns) -> Iterator[Block]:  # noqa: ARG001
    """Yield the images of a file with their classes; a block's part is what follows "x_", such as "train"."""
    done = 0
    with _opened(file) as archive:
        for part in _parts(file, archive):
            images, labels = _pair(file, archive, part, options.limits)
            values = math.prod(images.shape[1:])
            step = max(_BLOCK_VALUES // max(values, 1), 1)
            try:
                with archive.open(f"x_{part}.npy") as x, archive.open(f"y_{part}.npy") as y:
                    _header(x)
                    _header(y)
                    for first in range(0, images.shape[0], step):
                        rows = min(step, images.shape[0] - first)
                        pixels = _take(x, rows * values, images.dtype)
                        classes = _take(y, rows, labels.dtype)
                        done += rows * values * images.dtype.itemsize
                        yield _block(part, first, pixels, classes, (IMAGE, options.label), done)
            except _BROKEN as error:
                raise _damaged(file, error) from error


def image_shapes(file: InputFile, limits: SourceLimits) -> dict[str, tuple[int, ...]]:
    """Return the shape of each part's array of images, such as {"train": (60000, 28, 28)}.

    Raises:
        FileError: as `infer`.
    """
    with _opened(file) as archive:
        return {part: _pair(file, archive, part, limits)[0].shape for part in _parts(file, archive)}


def _block(
    part: str,
    first: int,
    pixels: npt.NDArray[Any],
    classes: npt.NDArray[Any],
    names: tuple[str, str],
    done: int,
) -> Block:
    rows = len(classes)
    each = len(pixels) // rows
    image, label = names
    offsets = pa.array(np.arange(rows + 1, dtype=np.int64) * each)
    return Block(
        rows=rows,
        columns={
            image: pa.LargeListArray.from_arrays(offsets, _typed(pixels)),
            label: _typed(classes),
        },
        find=lambda row: Place(None, first + row, f"x_{part}[{first + row}]".encode()),
        part=part,
        position=done,
    )


def _typed(values: npt.NDArray[Any]) -> pa.Array:
    """Convert values to the column's type; bytes stay uint8, which takes an eighth of the memory."""
    if values.dtype.kind == "f":
        return pa.array(values.astype(np.float64))
    if values.dtype.itemsize == 1 and values.dtype.kind in "bu":
        return pa.array(values.view(np.uint8))
    return pa.array(values.astype(np.uint64 if values.dtype.kind == "u" else np.int64))


def _parts(file: InputFile, archive: zipfile.ZipFile) -> list[str]:
    names = archive.namelist()
    if len(set(names)) < len(names):
        [(twice, _)] = Counter(names).most_common(1)
        raise FileError(f"{file.name} holds {twice!r} twice", hint="save it again with numpy.savez")
    parts = [name[2:-4] for name in names if name.startswith("x_") and name.endswith(".npy")]
    for part in parts:
        if f"y_{part}.npy" not in names:
            raise FileError(f"{file.name} holds x_{part} but no y_{part}", hint="save both with numpy.savez")
    if not parts:
        there = ", ".join(name.removesuffix(".npy") for name in names[:10]) or "nothing"
        raise FileError(
            f"{file.name} holds no x_train, but {there}",
            hint="numpy.savez(file, x_train=images, y_train=classes, x_test=..., y_test=...)",
        )
    return parts


def _pair(
    file: InputFile, archive: zipfile.ZipFile, part: str, limits: SourceLimits
) -> tuple[_Array, _Array]:
    images, labels = (_described(file, archive, f"{letter}_{part}") for letter in "xy")
    if len(images.shape) < 2 or images.shape[:1] != labels.shape[:1] or len(labels.shape) != 1:
        raise FileError(
            f"{file.name}: x_{part} has the shape {images.shape} and y_{part} {labels.shape}",
            hint="they must be [images, height, width, ...] and [images]",
        )
    values = math.prod(images.shape[1:])
    for name, size in (("image_pixels", values), ("decoded_bytes", values * _bytes_of(images.dtype))):
        if size > getattr(limits, name):
            raise FileError(
                f"{file.name}: an image of x_{part}, {images.shape[1:]} of {images.dtype}, is {size:,}, "
                f"{limits.exceeded(name)}",
                hint=f"make the images smaller, or raise data.limits.{name}",
            )
    return images, labels


def _bytes_of(dtype: np.dtype[Any]) -> int:
    """Return the bytes that a value takes while it is read, see `_typed`."""
    return 1 if dtype.itemsize == 1 and dtype.kind in "bu" else 8


def _described(file: InputFile, archive: zipfile.ZipFile, name: str) -> _Array:
    try:
        with archive.open(f"{name}.npy") as stream:
            shape, is_fortran, dtype = _header(stream)
            _check_size(name, shape, dtype, archive.getinfo(f"{name}.npy"), stream.tell())
    except _BROKEN as error:
        raise _damaged(file, error) from error
    if dtype.kind not in "buif" or dtype.hasobject or is_fortran:
        raise FileError(
            f"{file.name}: {name} holds {dtype}{' in column order' if is_fortran else ''}",
            hint="it must hold numbers in row order: numpy.ascontiguousarray(array)",
        )
    return _Array(shape, dtype)


def _check_size(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], info: zipfile.ZipInfo, header_bytes: int
) -> None:
    """Check that an array is as large as its header says.

    Raises:
        ValueError: it is not, or it is compressed by a method that numpy does not write.
    """
    if info.compress_type not in _METHODS:
        raise ValueError(f"{name} is compressed by method {info.compress_type}, which numpy does not write")
    there = info.file_size - header_bytes
    if dtype.kind in "buif" and (min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != there):
        raise ValueError(f"the header of {name} says {shape} of {dtype}, and {there:,} bytes follow")


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read an array's shape, whether it is in column order, and its dtype; its values follow in `stream`."""
    version = np.lib.format.read_magic(stream)
    is_first = version == (1, 0)
    size = stream.read(2 if is_first else 4)
    if (header_bytes := int.from_bytes(size, "little")) > _MOST_HEADER_BYTES:
        raise ValueError(f"a header of {header_bytes:,} bytes")
    header = io.BytesIO(size + stream.read(header_bytes))
    read_header = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
    try:
        shape, is_fortran, dtype = read_header(header)
    except MemoryError as error:  # of Python's parser, which allows so many signs or brackets at once
        raise ValueError("a header that is nested too deeply") from error
    return shape, is_fortran, dtype


def _take(stream: IO[bytes], count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    wanted = count * dtype.itemsize
    data = stream.read(wanted)
    if len(data) < wanted:
        raise EOFError(f"an array ends {wanted - len(data)} bytes too early")
    return np.frombuffer(data, dtype=dtype)


def _opened(file: InputFile) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file.path)
    except _BROKEN as error:
        raise _damaged(file, error) from error


def _damaged(file: InputFile, error: Exception) -> FileError:
    words = str(error).partition("\n")[0][:_MOST_WORDS]
    return FileError(
        f"{file.name} is not a readable npz file: {words}", hint="write it again with numpy.savez"
    )
