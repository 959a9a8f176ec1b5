"""Which images pass: those that TensorFlow decodes as they are meant, whatever the file is called."""

import io
import struct
import subprocess
import zlib

import numpy as np
import pytest
from PIL import Image

from slipway.components.errors import ComponentError
from slipway.components.ingest import image_files
from slipway.components.ingest.image_files import find_problem
from slipway.components.ingest.options import Options
from slipway.components.ingest.source_limits import SourceLimits

PICTURE = Image.fromarray(np.random.default_rng(1).integers(0, 256, (12, 10, 3), dtype=np.uint8))
FRAMES = [PICTURE.rotate(angle).convert("P") for angle in (90, 180)]
GREY = b"".join(bytes([level, level, level, 0]) for level in range(256))


def saved(picture, kind, **options):
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


PNG, JPEG, GIF = (saved(PICTURE, kind) for kind in ("PNG", "JPEG", "GIF"))
ANIMATION = saved(PICTURE.convert("P"), "GIF", save_all=True, append_images=FRAMES)


@pytest.mark.parametrize("file_format", ["images", "npz"])
@pytest.mark.parametrize("label", ["image", "", " "])
def test_class_of_an_image_has_a_name_of_its_own(file_format, label):
    with pytest.raises(ComponentError, match="names the feature of an image's class, beside 'image'"):
        Options(format=file_format, label=label)
    assert Options(format=file_format, label="images").label == "images"
    assert Options(label="image").label == "image"


def problem(data, name="cat/1.jpg", **limits):
    return find_problem(data, name=name, limits=SourceLimits(**limits))


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, *, depth, colours, interlaced=0, rows):
    head = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, interlaced)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def png_of(*chunks, colours=0, header=b"\0\0\0"):
    """A PNG of 4x4 pixels, all 0, with other chunks than are right; PIXELS are those that are."""
    head = struct.pack(">IIBB", 4, 4, 8, colours) + header
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*each) for each in ((b"IHDR", head), *chunks, (b"IEND", b""))
    )


PIXELS = (b"IDAT", zlib.compress(bytes(20)))
COLOURED = (b"IDAT", zlib.compress(bytes(4 * 13)))
TEXT, PALETTE = (b"tEXt", b"a\0b"), (b"PLTE", bytes(9))


def bmp(*, bits, palette=b"", compression=0, masks=b"", rows=b"", height=12):
    rows = rows or bytes(range(256)) * 2
    rows = rows[: (10 * bits + 31) // 32 * 4 * abs(height)]
    head = struct.pack("<IiiHHIIiiII", 40, 10, height, 1, bits, compression, len(rows), 0, 0, 0, 0)
    offset = 14 + len(head) + len(masks) + len(palette)
    begin = b"BM" + struct.pack("<IHHI", offset + len(rows), 0, 0, offset)
    return begin + head + masks + palette + rows


def with_canvas(gif, width, height):
    return gif[:6] + struct.pack("<HH", width, height) + gif[10:]


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("WEBP", "WebP"), ("TIFF", "TIFF"), ("AVIF", "AVIF"), ("JPEG2000", "JPEG 2000"), ("PPM", "PPM"),
        ("TGA", "TGA"), ("ICO", "ICO"), ("PCX", "PCX"), ("DDS", "DDS"),
    ],
)  # fmt: skip
def test_another_kind_of_image_is_named_with_what_converts_it(kind, name):
    found = problem(saved(PICTURE, kind), "my cats/1.jpg")
    assert found == ("unreadable image", f"{name}; convert it: magick 'my cats/1.jpg' png:'my cats/1.jpg'")


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\n<!DOCTYPE html><html>", "a web page"),
        (b'<?xml version="1.0"?><Error>', "XML"),
        (b"%!PS-Adobe-3.0 EPSF-3.0", "PostScript"),
        (b"%PDF-1.7", "a PDF"),
        (b"PK\x03\x04....", "a zip"),
    ],
)
def test_what_is_no_image_is_named(data, name):
    assert problem(data) == ("unreadable image", f"{name}, not an image")


def test_no_program_is_started_for_an_image(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **_: pytest.fail(f"starts {args}"))
    assert problem(saved(PICTURE, "EPS")) == ("unreadable image", "PostScript, not an image")


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"", "of no known format"),
        (b"GIF?", "of no known format"),
        (PNG[:-1], "it ends too early"),
        (PNG[:-12], "it ends too early"),
        (PNG[:60], "it ends too early"),
        (flipped(PNG, PNG.index(b"IDAT") + 20), "the checksum of its part 'IDAT' is wrong"),
        (flipped(PNG, len(PNG) - 1), "the checksum of its part 'IEND' is wrong"),
        (png(4, 4, depth=8, colours=0, rows=bytes(15)), "it holds 15 of 20 bytes of pixels"),
        (JPEG[:-2], "it ends too early"),
        (GIF[:-1], "it ends too early"),
        (ANIMATION[: len(ANIMATION) // 2], "it ends too early"),
        (bmp(bits=24)[:-1], "it has 437 bytes, not 438 as its header says"),
        (bmp(bits=24) + b"more", "it has 442 bytes, not 438 as its header says"),
    ],
)
def test_image_that_is_cut_or_damaged_is_refused(data, detail):
    reason, found = problem(data)
    assert reason == "unreadable image"
    assert detail in found


ORDER = "its parts are not those of a PNG, or in the wrong order"
NO_END = "its pixels have no end"


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (png_of(PIXELS, PIXELS, (b"IHDR", bytes(13))), ORDER),
        (png_of(PIXELS, (b"ABCD", b"")), ORDER),
        (png_of(PIXELS, colours=3), ORDER),
        (png_of(PALETTE, PALETTE, PIXELS, colours=3), ORDER),
        (PNG[:8] + chunk(*TEXT) + PNG[8:], ORDER),
        (png_of((b"PLTE", b"1234"), PIXELS, colours=3), "its palette has 4 bytes"),
        (png_of((b"PLTE", b""), COLOURED, colours=2), "its palette has 0 bytes"),
        (png_of(PIXELS, header=b"\1\0\0"), "its pixels are packed in an unknown way"),
        (png_of((b"IDAT", PIXELS[1][:-4])), NO_END),
        (
            png_of((b"IDAT", zlib.compress(bytes(3 << 20)))),
            "it unpacks to more than 1,048,576 bytes beyond its",
        ),
        (png(1_000_001, 1, depth=8, colours=0, rows=bytes(1_000_002)), "a PNG of 1,000,001x1 pixels"),
        (JPEG[:-2] + b"\xff\xe8\xff\xff\xff\xd9", "it ends too early"),
    ],
)
def test_image_that_tensorflow_would_not_decode_is_refused(data, detail):
    with Image.open(io.BytesIO(data)) as picture:
        picture.load()
    assert (problem(data) or ("", ""))[1].startswith(detail)


@pytest.mark.parametrize(
    "data",
    [
        png_of(PALETTE, TEXT, PIXELS, TEXT, colours=3),
        png_of((b"IDAT", PIXELS[1][:5]), (b"IDAT", b""), (b"IDAT", PIXELS[1][5:])),
        png_of((b"PLTE", b"1234"), COLOURED, colours=2),
        png_of((b"IDAT", zlib.compress(bytes(120)))),
        png_of((b"IDAT", PIXELS[1] + b"more")),
        png_of(PIXELS) + b"more",
        JPEG[:2] + b"\xff\xfe\0\6\xff\xd9\xff\xda" + JPEG[2:],
        JPEG + JPEG,
        saved(PICTURE, "JPEG", progressive=True, restart_marker_blocks=1),
    ],
)
def test_image_with_more_than_its_pixels_passes(data):
    assert problem(data) is None


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (saved(PICTURE.convert("P"), "BMP"), "a BMP with a palette"),
        (bmp(bits=8, palette=GREY[::-1]), "a BMP with a palette"),
        (saved(PICTURE.convert("1"), "BMP"), "a BMP of 1 bit a pixel"),
        (bmp(bits=4, palette=GREY[:64]), "a BMP of 4 bits a pixel"),
        (bmp(bits=16), "a BMP of 16 bits a pixel"),
        (bmp(bits=8, compression=1, palette=GREY), "a compressed BMP"),
        (with_canvas(GIF, 20, 24), "a GIF of 20x24 whose first frame is 10x12 at 0, 0"),
    ],
)
def test_kind_that_tensorflow_would_show_as_another_picture_is_refused(data, kind):
    assert problem(data) == ("unreadable image", f"{kind}; convert it: magick cat/1.jpg png:cat/1.jpg")


def test_interlaced_png_is_counted_by_its_passes():
    # 5x3 grey pixels are 15 bytes in seven rows of six passes, each behind a byte for its filter.
    assert problem(png(5, 3, depth=8, colours=0, interlaced=1, rows=bytes(22))) is None
    assert problem(png(5, 3, depth=8, colours=0, interlaced=1, rows=bytes(21))) == (
        "unreadable image",
        "it holds 21 of 22 bytes of pixels",
    )


@pytest.mark.parametrize("error", [RuntimeError("odd"), KeyError(1), AssertionError(), RecursionError()])
def test_whatever_a_decoder_raises_does_not_pass_the_quarantine(monkeypatch, error):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(image_files.Image, "open", fails)
    assert problem(PNG) == ("unreadable image", str(error) or type(error).__name__)


def test_want_of_memory_is_no_fault_of_the_image(monkeypatch):
    def fails(*_, **__):
        raise MemoryError

    monkeypatch.setattr(image_files.Image, "open", fails)
    with pytest.raises(MemoryError):
        problem(PNG)


@pytest.mark.parametrize(
    ("data", "limits", "detail"),
    [
        (PNG, {"image_pixels": 119}, "10x12 pixels, more than data.limits.image_pixels (119)"),
        (
            ANIMATION,
            {"image_pixels": 300},
            "360 pixels in all frames, more than data.limits.image_pixels (300)",
        ),
        (PNG, {"decoded_bytes": 100}, "more than data.limits.decoded_bytes (100)"),
    ],
)
def test_image_above_a_limit_is_refused_with_the_key_that_raises_it(monkeypatch, data, limits, detail):
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda _: pytest.fail("its pixels are unpacked"))
    assert problem(data, **limits) == ("larger than the limit", detail)


def test_jpeg_of_very_many_scans_is_refused_before_its_pixels_are_unpacked(monkeypatch):
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda _: pytest.fail("its pixels are unpacked"))
    data = saved(PICTURE, "JPEG", progressive=True)
    last, end = data.rfind(b"\xff\xda"), data.rfind(b"\xff\xd9")
    reason, detail = problem(data[:end] + data[last:end] * 100 + data[end:])
    assert reason == "larger than the limit"
    assert detail.startswith("more than 100 scans; convert it: magick ")


def test_bad_image_is_quarantined_beside_the_good_one(ingest, write):
    write(PNG, "cat/1.png")
    path = write(saved(PICTURE, "WEBP"), "cat/2.png")
    found = ingest(path.parent / "*.png", format="images", split={"all": 1})
    assert len(found.rows) == 1
    [reject] = found.rejects
    assert (reject["file"], reject["reason"]) == (str(path), "unreadable image")
    assert "WebP" in reject["detail"]


def test_frames_of_a_gif_count_as_large_as_they_are(ingest, write):
    changed = PICTURE.convert("P")
    changed.putpixel((3, 3), (changed.getpixel((3, 3)) + 1) % 200)
    path = write(saved(PICTURE.convert("P"), "GIF", save_all=True, append_images=[changed]), "cat/1.gif")
    for limit, passes in [(200, True), (119, False)]:  # the second frame is one pixel, not another 120
        limits = SourceLimits(image_pixels=limit)
        found = ingest(path, format="images", split={"all": 1}, limits=limits)
        assert bool(found.rows) == passes, found.rejects
