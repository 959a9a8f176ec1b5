"""The picture in the model card: as long as the numbers say, and inert."""

import math
import xml.etree.ElementTree as ElementTree

import pytest

from slipway.components.pusher.slice_chart import SHOWN_SLICES, slice_chart

SVG = "{http://www.w3.org/2000/svg}"
PROVENANCE = {
    "metrics": {"example_count": 4, "auc": 0.8},
    "slices": {
        "overall": {"auc": 0.8, "example_count": 4},
        "payment_type=Cash": {"auc": 0.4, "example_count": 1},
        "empty": {"example_count": 0},
    },
}
HOSTILE = "<script>alert(1)</script> \"' & ]]> \x1b[31m https://example.org"


def drawn(chart):
    """The picture, parsed: an error where it is no XML."""
    return ElementTree.fromstring(chart.svg())  # noqa: S314


def test_bars_are_as_long_as_the_values_with_the_lowest_first():
    picture = drawn(slice_chart(PROVENANCE))
    bars = [each for each in picture.iter(f"{SVG}rect") if each.get("width") != "100%"]
    assert [int(bar.get("width")) for bar in bars] == [160, 320]
    texts = [each.text for each in picture.iter(f"{SVG}text")]
    assert texts == [
        "auc by slice, the lowest first",
        "payment_type=Cash",
        "0.4 (1 examples)",
        "overall",
        "0.8 (4 examples)",
    ]


def test_text_of_anybody_is_only_shown():
    slices = {"overall": {HOSTILE: 0.5}, HOSTILE: {HOSTILE: 0.4}}
    picture = drawn(slice_chart({"metrics": {HOSTILE: 0.5}, "slices": slices}))
    assert {each.tag.removeprefix(SVG) for each in picture.iter()} == {"svg", "title", "rect", "text"}
    names = {name for each in picture.iter() for name in each.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name]
    assert "\x1b" not in slice_chart({"metrics": {HOSTILE: 0.5}, "slices": slices}).svg()


def test_many_slices_are_counted_instead_of_drawn():
    slices = {f"hour={hour}": {"auc": hour / 100} for hour in range(SHOWN_SLICES + 3)}
    chart = slice_chart({"metrics": {"auc": 0.5}, "slices": slices})
    assert (len(chart.bars), chart.left_out) == (SHOWN_SLICES, 3)
    assert chart.bars[0].name == "hour=0"


@pytest.mark.parametrize("metric", ["mean_absolute_error", "tip/mean_absolute_error"])
def test_worst_slices_of_an_error_are_those_with_the_highest_value(metric):
    slices = {f"hour={hour}": {metric: float(hour)} for hour in range(SHOWN_SLICES + 3)}
    chart = slice_chart({"metrics": {metric: 20.0}, "slices": slices})
    assert (chart.bars[0].name, chart.bars[0].share) == (f"hour={SHOWN_SLICES + 2}", 1.0)
    assert (chart.bars[-1].value, chart.order) == (3.0, "the highest first")


@pytest.mark.parametrize(
    ("metric", "required", "worst"),
    [
        ("gain", None, "a"),
        ("my_loss", None, "b"),
        ("tip/rank_error", None, "b"),
        ("cost", "at most 0.9", "b"),
        ("my_loss", "at least 0.1", "a"),
        ("gain", "at most 0.1 below the baseline, whose value is unknown", "a"),
    ],
)
def test_worst_slice_by_a_metric_of_one_s_own_is_that_of_its_name_or_threshold(metric, required, worst):
    checks = [{"metric": metric, "required": required}] if required else []
    slices = {"a": {metric: 0.2}, "b": {metric: 0.8}}
    chart = slice_chart({"metrics": {metric: 0.5}, "slices": slices, "gate": {"checks": checks}})
    assert chart.bars[0].name == worst


@pytest.mark.parametrize("checks", [None, 3, {"gain": 0.5}, ["gain"], [None, {"metric": "gain"}], [{}]])
def test_checks_that_a_gate_of_one_s_own_writes_in_another_form_say_nothing_of_the_worst(checks):
    """A version must not be kept from being pushed by them."""
    slices = {"a": {"gain": 0.2}, "b": {"gain": 0.8}}
    chart = slice_chart({"metrics": {"gain": 0.5}, "slices": slices, "gate": {"checks": checks}})
    assert chart.bars[0].name == "a"


def test_bar_of_a_negative_value_has_no_length():
    chart = slice_chart({"metrics": {"r2": 0.5}, "slices": {"a": {"r2": -1.0}, "b": {"r2": 0.5}}})
    assert [bar.share for bar in chart.bars] == [0.0, 0.5]


@pytest.mark.parametrize(("least", "shares"), [(0.5, [0.5, 1.0, 1.0]), (math.inf, [1.0, 1.0, 1.0])])
def test_bar_of_an_infinite_value_is_as_long_as_the_longest(least, shares):
    slices = {"a": {"mse": least}, "b": {"mse": max(least, 1.0)}, "c": {"mse": math.inf}}
    chart = slice_chart({"metrics": {"mse": math.inf}, "slices": {**slices, "no value": {"mse": math.nan}}})
    assert [bar.share for bar in chart.bars] == shares
    assert "inf" in list(chart.lines())[-1]
    assert drawn(chart)


def test_nothing_is_drawn_where_there_is_nothing_to_compare():
    assert slice_chart({}) is None
    assert slice_chart({"metrics": {"auc": 1}, "slices": {"overall": {"auc": 1}}}) is None
    assert slice_chart({"metrics": 3, "slices": []}) is None
