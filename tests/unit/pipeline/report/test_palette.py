import pytest

from slipway.pipeline.report.palette import DARK, LIGHT

TEXTS = ("text", "muted", "link", "good", "bad", "warn", "still")
MARKS = ("line", "first", "second", "good", "bad", "warn", "still")


def luminance(colour: str) -> float:
    """Relative luminance. Source: WCAG 2.2, its definition."""
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_the_formula_knows_black_on_white():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["page", "panel"])
def test_text_and_marks_stand_out_from_every_ground(scheme, ground):
    weak_texts = [name for name in TEXTS if contrast(scheme[name], scheme[ground]) < 4.5]
    weak_marks = [name for name in MARKS if contrast(scheme[name], scheme[ground]) < 3]

    assert (weak_texts, weak_marks) == ([], [])


def test_both_schemes_name_the_same_colours():
    assert LIGHT.keys() == DARK.keys()
