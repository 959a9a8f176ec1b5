"""How many pixels an image has once it is decoded, from its headers alone. Pure."""

import struct
from collections.abc import Callable, Iterator

PNG_BEGIN, GIF_BEGIN, JPEG_BEGIN = b"\x89PNG\r\n\x1a\n", b"GIF8", b"\xff\xd8\xff"
"""The first bytes of what is packed so well that a small file becomes a large image; a BMP is not packed."""
GIF_HEAD, GIF_DESCRIPTOR = 13, 9
"""Bytes before the colours of a GIF, and of what describes a frame."""
GIF_TRAILER, GIF_EXTENSION, GIF_IMAGE = 0x3B, 0x21, 0x2C
"""The first bytes of a GIF's blocks."""

_PNG_SIZES = 16
# Markers of a JPEG that no length follows; those that begin a frame: SOF0 to SOF15, without DHT, JPG and DAC.
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def _no_limit() -> None:
    """Lets each step pass."""


def decoded_pixels(data: bytes, begin: int = 0, *, step: Callable[[], None] = _no_limit) -> int:
    """The pixels of an image, of a GIF those of all its frames: its readers decode all of them.

    Args:
        data: holds an image; what follows it does not matter.
        begin: where the image begins.
        step: is called before each part of the file that is skipped, of which a hostile one may have as many
            as it has bytes, and may end that by an exception.

    Returns:
        0 for what is none of PNG, GIF and JPEG, or ends before it says its size.
    """
    try:
        if data.startswith(PNG_BEGIN, begin):
            width, height = struct.unpack_from(">II", data, begin + _PNG_SIZES)
            return int(width * height)
        if data.startswith(JPEG_BEGIN, begin):
            return _jpeg_pixels(data, begin, step)
    except (struct.error, IndexError):
        return 0
    return _gif_pixels(data, begin, step) if data.startswith(GIF_BEGIN, begin) else 0


def gif_frames(
    data: bytes, begin: int = 0, *, step: Callable[[], None] = _no_limit
) -> Iterator[tuple[int, int, int, int]]:
    """Left, top, width and height of each frame of a GIF.

    Args:
        data: holds the GIF.
        begin: where it begins.
        step: as for `decoded_pixels`.

    Raises:
        IndexError: the file is cut, behind the frames that were given.
        struct.error: the same.
    """
    position = begin + GIF_HEAD + gif_table(data[begin + 10])
    while (block := data[position]) != GIF_TRAILER:
        step()
        if block == GIF_IMAGE:
            left, top, width, height = struct.unpack_from("<HHHH", data, position + 1)
            # Behind the colours stands how many bits the first code has.
            position += 1 + GIF_DESCRIPTOR + gif_table(data[position + GIF_DESCRIPTOR]) + 1
            yield left, top, width, height
        elif block == GIF_EXTENSION:
            position += 2
        else:
            raise IndexError(position)
        position = behind_blocks(data, position, step=step)


def behind_blocks(data: bytes, position: int, *, step: Callable[[], None] = _no_limit) -> int:
    """Where blocks end, each behind its length, of which the last is 0; `step` as for `decoded_pixels`."""
    while size := data[position]:
        step()
        position += 1 + size
    return position + 1


def gif_table(flags: int) -> int:
    """Bytes of a table of colours."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _gif_pixels(data: bytes, begin: int, step: Callable[[], None]) -> int:
    total = 0
    try:
        for _, _, width, height in gif_frames(data, begin, step=step):
            total += width * height
    except (struct.error, IndexError):
        pass  # readers decode what there is before the cut
    return total


def _jpeg_pixels(data: bytes, begin: int, step: Callable[[], None]) -> int:
    position = begin + 2
    while data[position] == 0xFF:
        step()
        marker = data[position + 1]
        if marker == 0xFF:  # bytes that fill up
            position += 1
        elif marker in _JPEG_BARE:
            position += 2
        else:
            if marker in _JPEG_FRAMES:
                height, width = struct.unpack_from(">HH", data, position + 5)
                return int(height * width)
            position += 2 + int(struct.unpack_from(">H", data, position + 2)[0])
    return 0
