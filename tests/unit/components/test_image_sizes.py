"""The pixels of an image, told without decoding it."""

import io

import pytest
from PIL import Image

from slipway.components import image_sizes
from slipway.components.image_sizes import MOST_SCANS, decoded_pixels, has_too_many_scans, is_webp_animation

SIZE = (321, 123)


def file_of(kind, *frames, **options):
    stream = io.BytesIO()
    first, *more = frames or [Image.new("RGB", SIZE)]
    first.save(stream, kind, **options, **({"save_all": True, "append_images": more} if more else {}))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("PNG", {"interlace": 1}),
        ("JPEG", {}),
        ("JPEG", {"progressive": True, "comment": b"\xff\xd8\xff" * 9}),
        ("JPEG", {"exif": b"Exif\0\0" + b"\xff" * 500}),
        ("GIF", {}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"lossless": False}),
        ("WEBP", {"exif": b"Exif\0\0"}),
    ],
)
def test_pixels_are_height_times_width_whatever_follows(kind, options):
    data = file_of(kind, **options)
    assert decoded_pixels(data) == decoded_pixels(data + data) == 321 * 123


@pytest.mark.parametrize("stray", [b"\0", b"a text", b"\xff\0", b"\xff\xfe\0\1", b"\xff" * 9])
def test_what_decoders_skip_between_the_segments_of_a_jpeg_hides_no_pixels(stray):
    data = file_of("JPEG")
    at = 4 + int.from_bytes(data[4:6], "big")  # behind the first segment
    assert decoded_pixels(data[:at] + stray + data[at:]) == 321 * 123


def test_all_frames_of_a_gif_count_also_of_one_that_is_cut():
    frames = [Image.new("RGB", SIZE, colour) for colour in ("red", "green", "blue")]
    data = file_of("GIF", *frames)
    assert decoded_pixels(data) == 3 * 321 * 123
    assert decoded_pixels(data[:-1]) == 3 * 321 * 123


def test_each_frame_of_a_gif_counts_as_the_largest_as_tensorflow_decodes_it():
    frame = b",\0\0\0\0\1\0\1\0\0\2\2\x44\1\0"
    assert decoded_pixels(file_of("GIF")[:-1] + frame * 20 + b";") == 21 * 321 * 123


def test_coded_pixels_of_a_webp_without_the_head_of_their_chunk_count():
    for lossless in (True, False):
        data = file_of("WEBP", lossless=lossless)
        assert decoded_pixels(data[:12] + data[20:]) == 321 * 123


def test_a_webp_is_an_animation_if_it_says_so():
    frames = [Image.new("RGB", SIZE, colour) for colour in ("red", "green")]
    animation = file_of("WEBP", *frames)
    assert is_webp_animation(b"before " + animation, 7)
    assert not is_webp_animation(file_of("WEBP", exif=b"Exif\0\0"))
    assert not is_webp_animation(file_of("WEBP"))


@pytest.mark.parametrize(
    "data",
    [b"", b"a text", b"BM" + bytes(60), b"\x89PNG\r\n\x1a\n", b"GIF8", b"\xff\xd8\xff", b"RIFF____WEBP"],
)
def test_what_says_no_size_has_no_pixels(data):
    assert decoded_pixels(data) == 0


def test_headers_that_are_cut_anywhere_are_no_error():
    for kind in ("PNG", "JPEG", "GIF", "WEBP"):
        data = file_of(kind)
        assert all(decoded_pixels(data[:end]) >= 0 for end in range(len(data)))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_an_image_within_other_bytes_is_found_and_its_parts_are_few(kind):
    steps = []
    data = b"before " + file_of(kind) + b" behind"
    assert decoded_pixels(data, 7, step=lambda: steps.append(1)) == 321 * 123
    assert len(steps) < 20


def progressive(*, scans, thumbnail=b""):
    """A JPEG of that many scans: its last one, which changes nothing, is repeated."""
    data = file_of("JPEG", progressive=True, exif=b"Exif\0\0" + thumbnail)
    last, end = data.rfind(b"\xff\xda"), data.rfind(b"\xff\xd9")
    more = scans - (data.count(b"\xff\xda") - thumbnail.count(b"\xff\xda"))
    return data[:end] + data[last:end] * more + data[end:]


def test_scans_of_a_jpeg_are_counted_up_to_its_end():
    assert not has_too_many_scans(progressive(scans=MOST_SCANS))
    assert has_too_many_scans(progressive(scans=MOST_SCANS + 1))
    assert has_too_many_scans(b"before " + progressive(scans=MOST_SCANS + 1), 7)


def test_what_only_looks_like_a_scan_is_none():
    looks = b"\xff\xda" * (MOST_SCANS + 1)
    data = progressive(scans=MOST_SCANS, thumbnail=looks)
    assert data.count(b"\xff\xda") == 2 * MOST_SCANS + 1
    assert not has_too_many_scans(data)
    assert not has_too_many_scans(data + looks)


def test_scans_that_are_cut_anywhere_are_no_error(monkeypatch):
    monkeypatch.setattr(image_sizes, "MOST_SCANS", 2)
    data = progressive(scans=4)
    assert {has_too_many_scans(data[:end]) for end in range(len(data))} == {False, True}
