"""A component's settings say their defaults, bounds and descriptions themselves, and check values by them."""

from dataclasses import MISSING, dataclass, fields
from typing import Literal

import pytest

from slipway.components.setting_fields import broken_rule, setting


@dataclass(frozen=True, kw_only=True)
class Oven:
    """As a component declares its settings."""

    heat: Literal["top", "bottom"] = setting("top", "From where.")
    degrees: int = setting(180, "How hot.", ge=50, le=250)
    minutes: float | None = setting(None, "How long; null: until it smells.", gt=0, lt=600)
    label: str = setting(MISSING, "What it is.")
    shelves: dict[str, int] = setting({}, "By dish.")


def test_default_is_the_fields_and_the_rest_its_metadata():
    oven = Oven(label="bread")
    assert (oven.heat, oven.degrees, oven.minutes, oven.shelves) == ("top", 180, None, {})
    assert oven.shelves is not Oven(label="cake").shelves
    told = {each.name: dict(each.metadata) for each in fields(Oven)}
    assert told["degrees"] == {"description": "How hot.", "ge": 50, "le": 250}
    with pytest.raises(TypeError, match="label"):
        Oven()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("heat", "side", "is none of top, bottom"),
        ("heat", "bottom", ""),
        ("degrees", 49, "must be a whole number >= 50 and <= 250"),
        ("degrees", 50, ""),
        ("degrees", 250, ""),
        ("degrees", 251, "must be a whole number >= 50 and <= 250"),
        ("degrees", True, "must be a whole number >= 50 and <= 250"),
        ("degrees", 60.5, "must be a whole number >= 50 and <= 250"),
        ("degrees", None, "must be a whole number >= 50 and <= 250"),
        ("minutes", 0, "must be a number > 0 and < 600"),
        ("minutes", 1, ""),
        ("minutes", 599.9, ""),
        ("minutes", 600.0, "must be a number > 0 and < 600"),
        ("minutes", float("nan"), "must be a number > 0 and < 600"),
        ("minutes", "5", "must be a number > 0 and < 600"),
        ("minutes", None, ""),
        ("label", "any text", ""),
    ],
)
def test_rule_that_a_value_breaks_is_reported_in_words(name, value, words):
    [found] = [each for each in fields(Oven) if each.name == name]
    assert broken_rule(value, found) == words
