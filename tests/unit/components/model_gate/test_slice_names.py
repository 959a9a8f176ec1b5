"""Two slices never have one name, and a name says its columns."""

import itertools

import pytest

from slipway.components.model_gate.slice_names import columns_name, named_slices, slice_columns, slice_name

PARTS = ("a", "b", "a=1", "a, b", 'a"', '"a"', "", "1", "x, b=1", 'x", b="1', "1, b", "b=2", "\n, ", ", ")


def test_names_are_as_people_write_them():
    assert slice_name([("pay type", "Cash"), ("hour", "3")]) == "hour=3, pay type=Cash"
    assert slice_name([("pay", "a=b")]) == "pay=a=b"
    assert slice_name([]) == "overall"


def test_a_value_with_what_stands_between_the_columns_is_quoted():
    assert slice_name([("a", "1, b=2")]) == 'a="1, b=2"'
    assert slice_name([("a", '"1"')]) == r'a="\"1\""'
    assert columns_name(["b", "a=x"]) == '"a=x", b'


def test_no_two_slices_have_one_name():
    ones = list(itertools.product(PARTS[:-2], PARTS))
    keys = [*((each,) for each in ones), *(pair for pair in itertools.combinations(ones, 2))]
    keys = {tuple(sorted(key)) for key in keys if len({column for column, _ in key}) == len(key)}
    names = {slice_name(key) for key in keys}
    assert len(names) == len(keys)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("pay type=a=b, hour=3", "pay type, hour"),
        ('a="1, b=2", c=3', "a, c"),
        ('"a, b"=1', '"a, b"'),
        ("overall", ""),
    ],
)
def test_columns_of_a_slice_are_what_stands_before_the_first_equals_signs(name, columns):
    assert slice_columns(name) == columns


@pytest.mark.parametrize("value", [value for value in PARTS if '"' not in value])
def test_columns_are_read_from_each_name(value):
    name = slice_name([("a", value), ("b=1", value)])
    assert slice_columns(name) == columns_name(["a", "b=1"])


@pytest.mark.parametrize(
    ("text", "exact", "plain"),
    [
        ("a=1, b=2", {"a=1, b=2"}, {"a=1, b=2"}),
        ('a="x, b=1", b=2', {'a="x, b=1", b=2'}, {r'a="\"x, b=1\"", b=2', r'a="\"x", b="1\", b=2"'}),
        ("a=x, b=1, b=2", set(), {'a="x, b=1", b=2', 'a=x, b="1, b=2"'}),
        ("a=x, c=2", set(), set()),
        ('a="x', set(), set()),
    ],
)
def test_what_a_user_writes_may_mean_one_slice_or_several(text, exact, plain):
    assert named_slices(text, ("a", "b")) == (exact, plain)
