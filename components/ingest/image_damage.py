"""Checks images for problems that TensorFlow's decoder has with them and Pillow has not.

TensorFlow reads JPEG, PNG, GIF and BMP, but not every variant of them: one file that it rejects stops the
whole Transform, and a file that it misreads is a different picture. The checks take bytes and describe the
problem.
"""

import re
import struct
import zlib
from collections.abc import Callable, Mapping

from slipway.components.counted_words import counted
from slipway.components.image_sizes import (
    GIF_DESCRIPTOR,
    GIF_HEAD,
    GIF_IMAGE,
    JPEG_BEGIN,
    behind_blocks,
    gif_frames,
    gif_table,
)

# Offset and bytes that identify other image formats.
_OTHER_IMAGES: tuple[tuple[int, bytes, str], ...] = (
    (8, b"WEBP", "WebP"),
    (0, b"II*\0", "TIFF"),
    (0, b"MM\0*", "TIFF"),
    (0, b"II+\0", "TIFF"),
    (4, b"ftypavi", "AVIF"),
    (4, b"ftyphei", "HEIC"),
    (4, b"ftyphev", "HEIC"),
    (4, b"ftypmif1", "HEIF"),
    (4, b"jP  \r\n\x87\n", "JPEG 2000"),
    (0, b"\xff\x4f\xff\x51", "JPEG 2000"),
    (0, b"\xff\x0a", "JPEG XL"),
    (4, b"JXL \r\n\x87\n", "JPEG XL"),
    (0, b"\0\0\1\0", "ICO"),
    (0, b"DDS ", "DDS"),
    (0, b"8BPS", "PSD"),
    (0, b"icns", "ICNS"),
    (0, b"qoif", "QOI"),
    (0, b"BLP", "BLP"),
    (0, b"\x01\xda", "SGI"),
    (0, b"\x0a\x05\x01", "PCX"),
    (0, b"SIMPLE  =", "FITS"),
)
# The same for other kinds of files found in place of an image.
_NO_IMAGES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"%!ps", "PostScript"),
    (0, b"\xc5\xd0\xd3\xc6", "PostScript"),
    (0, b"%pdf", "a PDF"),
    (0, b"<svg", "SVG"),
    (0, b"pk\x03\x04", "a zip"),
    (0, b"\x1f\x8b", "gzip"),
    (0, b"<!doctype html", "a web page"),
    (0, b"<html", "a web page"),
    (0, b"<?xml", "XML"),
    (0, b"{", "JSON"),
)
_HEAD = 64
_JPEG_END = b"\xff\xd9"
# A marker among coded pixels that something follows: neither a restart, nor one that stands for a byte.
_JPEG_MARKER = re.compile(rb"\xff[^\x00\x01\xd0-\xd7\xff]", re.DOTALL)
_PNG_HEAD = 8
_PNG_ORDERS = ([b"IHDR", b"PLTE", b"IDAT", b"IEND"], [b"IHDR", b"IDAT", b"IEND"])
_PNG_MOST_PARTS = 4
_PNG_INDICES, _PNG_PALETTES = b"\x03", range(3, 769, 3)  # the kind of pixels; sizes of their palette
_PNG_LONGEST = 1_000_000  # libpng's limit of a side
_PNG_SURPLUS_BYTES = 1 << 20  # which some writers append, and readers unpack for nothing
_PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
# The pixels of each pass of an interlaced PNG: first column and row, and the steps to the next.
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_BMP_HEAD, _BMP_LEAST_INFO = 14, 40
_BMP_BITS = (8, 24, 32)
_BMP_PLAIN = (0, 3, 6)  # uncompressed, without and with masks; Pillow rejects masks in another order


def other_image(data: bytes) -> str:
    """Name the format of an image that cannot be read; empty if the bytes do not seem to be an image."""
    if data[:1] == b"P" and data[1:2] in b"1234567" and data[2:3].isspace():
        return "PPM"
    if data[-18:-2] == b"TRUEVISION-XFILE":
        return "TGA"
    return _known_by(data, _OTHER_IMAGES)


def no_image(data: bytes) -> str:
    """Name the kind of bytes that are not an image; empty if unknown."""
    return _known_by(data[:_HEAD].lstrip().lower(), _NO_IMAGES)


def find_damage(data: bytes, kind: str) -> str:
    """Describe damage in an image that Pillow can read; empty if there is none.

    Args:
        data: the whole file.
        kind: Pillow's name for the format.
    """
    check = _CHECKS.get(kind)
    if check is None:
        return ""
    try:
        return check(data)
    except (struct.error, IndexError):
        return "it ends too early"


def odd_kind(data: bytes) -> str:
    """Describe an undamaged GIF or BMP that TensorFlow misreads or rejects; else empty."""
    return _odd_gif(data) if data.startswith(b"GIF") else _odd_bmp(data)


def gif_colours(data: bytes) -> int:
    """Return the number of colours in the palette of an undamaged GIF's first frame.

    TensorFlow rejects pixels with other colours.
    """
    position = GIF_HEAD + gif_table(data[10])
    while data[position] != GIF_IMAGE:
        position = behind_blocks(data, position + 2)
    return (gif_table(data[position + GIF_DESCRIPTOR]) or gif_table(data[10])) // 3


def frame_pixels(data: bytes) -> int:
    """Return the pixels of all frames of an undamaged GIF: readers decode all, whichever they show."""
    return sum(width * height for _, _, width, height in gif_frames(data))


def _png_damage(data: bytes) -> str:
    """Check for truncated or misplaced chunks, wrong checksums, and pixels other than the header says."""
    position, packed, header, kind = _PNG_HEAD, [], b"", b""
    order: list[bytes] = []  # of the chunks that no reader may skip, which are named in capitals
    while kind != b"IEND":
        before = kind
        size, kind = struct.unpack_from(">I4s", data, position)
        body = data[position + 8 : position + 8 + size]
        (checksum,) = struct.unpack_from(">I", data, position + 8 + size)
        if zlib.crc32(kind + body) != checksum:
            return f"the checksum of its part {kind.decode('latin-1')!r} is wrong"
        if kind[:1].isupper() and not kind == before == b"IDAT":
            order.append(kind)
        if not order or len(order) > _PNG_MOST_PARTS:
            break
        if kind == b"IHDR":
            header = body
        elif kind == b"IDAT":
            packed.append(body)
        elif kind == b"PLTE" and (
            not body or (header[9:10] == _PNG_INDICES and len(body) not in _PNG_PALETTES)
        ):
            return f"its palette has {len(body)} bytes"
        position += 12 + size
    if order not in (_PNG_ORDERS[:1] if header[9:10] == _PNG_INDICES else _PNG_ORDERS):
        return "its parts are not those of a PNG, or in the wrong order"
    return _png_header_problem(header) or _png_pixels_problem(b"".join(packed), _png_bytes(header))


def _png_header_problem(header: bytes) -> str:
    """Describe what TensorFlow rejects in a header, beside what Pillow rejects; else empty."""
    width, height, _, _, compression, filtering, interlacing = struct.unpack(">IIBBBBB", header)
    if max(width, height) > _PNG_LONGEST:
        return f"a PNG of {width:,}x{height:,} pixels; TensorFlow reads at most {_PNG_LONGEST:,} in a row"
    if compression or filtering or interlacing > 1:
        return "its pixels are packed in an unknown way"
    return ""


def _png_pixels_problem(packed: bytes, wanted: int) -> str:
    """Check the packed rows of a PNG, which unpack to so many bytes."""
    unpacker = zlib.decompressobj()
    try:
        found = len(unpacker.decompress(packed, wanted))
    except zlib.error as error:
        return f"its pixels cannot be unpacked: {error}"
    if found != wanted:
        return f"it holds {found:,} of {wanted:,} bytes of pixels"
    try:
        surplus = unpacker.decompress(unpacker.unconsumed_tail, _PNG_SURPLUS_BYTES)
    except zlib.error:
        return ""  # a wrong checksum, which no decoder minds
    if len(surplus) == _PNG_SURPLUS_BYTES:
        return f"it unpacks to more than {_PNG_SURPLUS_BYTES:,} bytes beyond its pixels"
    return "" if unpacker.eof else "its pixels have no end"


def _png_bytes(header: bytes) -> int:
    """Return the size of the unpacked rows in bytes, including the filter byte before each row."""
    width, height, depth, colours, _, _, is_interlaced = struct.unpack(">IIBBBBB", header)
    bits = depth * _PNG_CHANNELS.get(colours, 0)
    total = 0
    for x, y, step_x, step_y in _ADAM7 if is_interlaced else ((0, 0, 1, 1),):
        columns, rows = -(-(width - x) // step_x), -(-(height - y) // step_y)
        if columns > 0 and rows > 0:
            total += rows * (1 + (columns * bits + 7) // 8)
    return total


def _gif_damage(data: bytes) -> str:
    """Check for a GIF without frames; a truncated frame raises an error."""
    return "" if list(gif_frames(data)) else "it holds no frame"


def _odd_gif(data: bytes) -> str:
    """Describe a GIF whose first frame does not fill the picture: TensorFlow would return the frame alone."""
    width, height = struct.unpack_from("<HH", data, 6)
    first = next(gif_frames(data))
    if first == (0, 0, width, height):
        return ""
    return f"a GIF of {width}x{height} whose first frame is {first[2]}x{first[3]} at {first[0]}, {first[1]}"


def _odd_bmp(data: bytes) -> str:
    """Describe a BMP that TensorFlow misreads, except one with a palette, which Pillow reports."""
    (info,) = struct.unpack_from("<I", data, _BMP_HEAD)
    if info < _BMP_LEAST_INFO:
        return "a BMP of OS/2"
    _, _, _, bits, compression = _bmp_info(data)
    if bits not in _BMP_BITS:
        return f"a BMP of {counted(bits, 'bit')} a pixel"
    return "" if compression in _BMP_PLAIN else "a compressed BMP"


def _bmp_damage(data: bytes) -> str:
    """Check for a BMP with too many or too few bytes."""
    if _odd_bmp(data):
        return ""
    width, height, _, bits, _ = _bmp_info(data)
    (offset,) = struct.unpack_from("<I", data, 10)
    wanted = offset + (width * bits + 31) // 32 * 4 * abs(height)
    return "" if len(data) == wanted else f"it has {len(data):,} bytes, not {wanted:,} as its header says"


def _bmp_info(data: bytes) -> tuple[int, int, int, int, int]:
    """Return width, height (negative: top-down), planes, bits per pixel and compression."""
    width, height, planes, bits, compression = struct.unpack_from("<iiHHI", data, _BMP_HEAD + 4)
    return width, height, planes, bits, compression


def _jpeg_damage(data: bytes) -> str:
    """Check for an end marker after the last scan: TensorFlow needs one, Pillow only the pixels."""
    position = len(JPEG_BEGIN) - 1
    while found := _JPEG_MARKER.search(data, position):
        if found[0] == _JPEG_END:
            return ""
        (size,) = struct.unpack_from(">H", data, found.end())
        position = found.end() + size
    return "it ends too early"


def _known_by(head: bytes, beginnings: tuple[tuple[int, bytes, str], ...]) -> str:
    found = (name for offset, letters, name in beginnings if head.startswith(letters, offset))
    return next(found, "")


_CHECKS: Mapping[str, Callable[[bytes], str]] = {
    "JPEG": _jpeg_damage,
    "MPO": _jpeg_damage,
    "PNG": _png_damage,
    "GIF": _gif_damage,
    "BMP": _bmp_damage,
}
