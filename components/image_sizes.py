"""Counts the pixels that an image has once decoded, and a JPEG's scans, from its headers alone. Pure."""

import re
import struct
from collections.abc import Callable, Iterator

PNG_BEGIN, GIF_BEGIN, JPEG_BEGIN, WEBP_BEGIN = b"\x89PNG\r\n\x1a\n", b"GIF8", b"\xff\xd8\xff", b"RIFF"
"""Magic numbers of the formats whose compression can make a large image of a small file; BMP has none.

JPEG XL is missing: its two bytes occur by chance in other images, where it would be looked for, too.
"""
WEBP_WORD = b"WEBP"
"""What follows the first 8 bytes of a WebP; other files begin like it."""
GIF_HEAD, GIF_DESCRIPTOR = 13, 9
"""Sizes in bytes: what precedes a GIF's global colour table, and an image descriptor without its type."""
GIF_TRAILER, GIF_EXTENSION, GIF_IMAGE = 0x3B, 0x21, 0x2C
"""The first bytes of a GIF's blocks."""

_PNG_SIZES = 16
# JPEG markers without a length field; and those that begin a frame: SOF0 to SOF15, without DHT, JPG and DAC.
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_SCAN, _JPEG_END = 0xDA, 0xD9
# What ends the coded pixels of a scan, and what decoders look for between segments.
_JPEG_MARKER = re.compile(rb"\xff([^\x00\xff])", re.DOTALL)
# WebP: a container, or without one coded pixels, with or without the head of their chunk.
_WEBP_CONTAINER = re.compile(
    rb"RIFF.{4}WEBPVP8X.{4}(?P<flags>.).{3}(?P<width>.{3})(?P<height>.{3})", re.DOTALL
)
_WEBP_LOSSLESS = re.compile(rb"RIFF.{4}WEBP(?:VP8L.{4})?/(?P<sizes>.{4})", re.DOTALL)
_WEBP_LOSSY = re.compile(rb"RIFF.{4}WEBP(?:VP8 .{4})?.{3}\x9d\x01\x2a(?P<sizes>.{4})", re.DOTALL)
_WEBP_ANIMATION, _WEBP_SIDE_BITS = 2, 14

MOST_SCANS = 100
"""The most scans of a JPEG that is decoded. Each goes over all pixels again, 0.1 s for 50 million, and may
take a dozen bytes: a small file could keep a decoder at work for hours. Progressive files have about ten."""


def _no_limit() -> None:
    """Allow every step."""


def decoded_pixels(data: bytes, begin: int = 0, *, step: Callable[[], None] = _no_limit) -> int:
    """Return the number of pixels of an image; for a GIF, of all its frames, since readers decode them all.

    Each frame counts as the largest, since `tf.io.decode_gif` makes all of that size.

    Args:
        data: bytes with an image; bytes after the image are ignored.
        step: called before each part of the file that is skipped. A hostile file can have as many parts as
            bytes, so `step` may raise an exception to stop the scan.

    Returns:
        The pixels; 0 if the data is not PNG, GIF, JPEG or WebP, or ends before its size is known.
    """
    try:
        if data.startswith(PNG_BEGIN, begin):
            width, height = struct.unpack_from(">II", data, begin + _PNG_SIZES)
            return int(width * height)
        if data.startswith(JPEG_BEGIN, begin):
            return _jpeg_pixels(data, begin, step)
        if data.startswith(WEBP_BEGIN, begin):
            return _webp_pixels(data, begin)
    except (struct.error, IndexError):
        return 0
    return _gif_pixels(data, begin, step) if data.startswith(GIF_BEGIN, begin) else 0


def is_webp_animation(data: bytes, begin: int = 0) -> bool:
    """Return True if a WebP says that it has frames: TensorFlow 2.21 writes beyond its memory for these."""
    found = _WEBP_CONTAINER.match(data, begin)
    return found is not None and bool(found["flags"][0] & _WEBP_ANIMATION)


def has_too_many_scans(data: bytes, begin: int = 0, *, step: Callable[[], None] = _no_limit) -> bool:
    """Return True if a JPEG has more than `MOST_SCANS` scans.

    Args:
        data, begin, step: as for `decoded_pixels`; bytes after the image are ignored.
    """
    # Other bytes may look like this marker, but no marker looks otherwise.
    if data.count(b"\xff\xda", begin) <= MOST_SCANS:
        return False
    scans, position = 0, begin + 2
    while (found := _JPEG_MARKER.search(data, position)) and scans <= MOST_SCANS:
        step()
        marker, position = found[1][0], found.end()
        if marker == _JPEG_END:
            break
        scans += marker == _JPEG_SCAN
        if marker not in _JPEG_BARE:
            position += int.from_bytes(data[position : position + 2], "big")
    return scans > MOST_SCANS


def gif_frames(
    data: bytes, begin: int = 0, *, step: Callable[[], None] = _no_limit
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the left, top, width and height of each frame of a GIF.

    Args:
        step: as for `decoded_pixels`.

    Raises:
        IndexError: the file is truncated or damaged after the frames yielded so far.
        struct.error: the same.
    """
    position = begin + GIF_HEAD + gif_table(data[begin + 10])
    while (block := data[position]) != GIF_TRAILER:
        step()
        if block == GIF_IMAGE:
            left, top, width, height = struct.unpack_from("<HHHH", data, position + 1)
            # The byte after the colour table is the size of the first code in bits.
            position += 1 + GIF_DESCRIPTOR + gif_table(data[position + GIF_DESCRIPTOR]) + 1
            yield left, top, width, height
        elif block == GIF_EXTENSION:
            position += 2
        else:
            raise IndexError(position)
        position = behind_blocks(data, position, step=step)


def behind_blocks(data: bytes, position: int, *, step: Callable[[], None] = _no_limit) -> int:
    """Return the offset after a chain of GIF sub-blocks, which a length of 0 ends.

    Args:
        position: offset of the first sub-block's length.
        step: as for `decoded_pixels`.
    """
    while size := data[position]:
        step()
        position += 1 + size
    return position + 1


def gif_table(flags: int) -> int:
    """Return the size in bytes of the colour table that the flags announce; 0 without one."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _gif_pixels(data: bytes, begin: int, step: Callable[[], None]) -> int:
    frames = widest = highest = 0
    try:
        for _, _, width, height in gif_frames(data, begin, step=step):
            frames, widest, highest = frames + 1, max(widest, width), max(highest, height)
    except (struct.error, IndexError):
        pass  # readers decode the frames before the damage
    return frames * widest * highest


def _jpeg_pixels(data: bytes, begin: int, step: Callable[[], None]) -> int:
    position = begin + 2
    while (position := data.find(b"\xff", position)) >= 0:  # decoders skip what lies between segments
        step()
        marker = data[position + 1]
        if marker in (_JPEG_SCAN, _JPEG_END):
            break
        if marker == 0xFF:  # a fill byte
            position += 1
        elif not marker or marker in _JPEG_BARE:
            position += 2
        else:
            if marker in _JPEG_FRAMES:
                height, width = struct.unpack_from(">HH", data, position + 5)
                return int(height * width)
            position += 2 + int(struct.unpack_from(">H", data, position + 2)[0])
    return 0


def _webp_pixels(data: bytes, begin: int) -> int:
    if found := _WEBP_CONTAINER.match(data, begin):
        # Sizes minus one. Frames are not counted, since no animation is decoded.
        width, height = (int.from_bytes(found[side], "little") + 1 for side in ("width", "height"))
        return width * height
    most = (1 << _WEBP_SIDE_BITS) - 1
    if found := _WEBP_LOSSLESS.match(data, begin):
        sizes = int.from_bytes(found["sizes"], "little")  # minus one, and side by side
        return ((sizes & most) + 1) * ((sizes >> _WEBP_SIDE_BITS & most) + 1)
    if found := _WEBP_LOSSY.match(data, begin):
        wide, high = struct.unpack("<HH", found["sizes"])
        return int((wide & most) * (high & most))
    return 0
