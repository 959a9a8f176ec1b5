"""Images in folders, one folder for each class: the encoded bytes and the folder's name are the example."""

import io
import warnings
from collections.abc import Iterator
from pathlib import PurePosixPath

import pyarrow as pa
from PIL import Image, UnidentifiedImageError

from components.ingest.blocks import Block, FileError, InputFile, Place, Reject
from components.ingest.column_types import Columns, ColumnType
from components.ingest.options import Options

IMAGE = "image"
# What Pillow raises over files that are damaged or far larger than they seem.
_BROKEN = (OSError, SyntaxError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning)


def infer(file: InputFile, options: Options, known: Columns) -> dict[str, ColumnType]:  # noqa: ARG001
    """The same for each image: its bytes, and its class as text."""
    return {IMAGE: ColumnType.TEXT, options.label: ColumnType.TEXT}


def read(file: InputFile, options: Options, columns: Columns) -> Iterator[Block]:  # noqa: ARG001
    """One image, once it has proved to be one.

    Raises:
        FileError: the file cannot be opened.
    """
    label = PurePosixPath(file.name).parent.name
    try:
        data = file.path.read_bytes()
    except OSError as error:
        raise FileError(f"{file.name} cannot be read: {error.strerror}") from error
    place = Place(None, 0, data)
    if why := _find_problem(data):
        rejects = [Reject("unreadable image", place, detail=why)]
        yield Block(rows=0, columns={}, rejects=rejects, find=lambda _: place, position=len(data))
        return
    image, name = pa.array([data], pa.large_binary()), pa.array([label.encode()], pa.large_binary())
    yield Block(rows=1, columns={IMAGE: image, options.label: name}, find=lambda _: place, position=len(data))


def _find_problem(data: bytes) -> str:
    """Why the bytes are no whole image; empty if they are one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data)) as image:
                image.load()
    except UnidentifiedImageError:
        return "of no known format"
    except _BROKEN as error:
        return str(error)[:120]
    return ""
