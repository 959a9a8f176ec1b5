"""How a sweep's `--set`s are read."""

import pytest

from slipway.pipeline.errors import UsageError
from slipway.pipeline.sweep.space import Choice, Range, read_space


def test_values_ranges_and_one_value_are_distinguished():
    space = read_space(["a.b=1,2", "c=log(1e-4,1e-2)", "d=3", "e=int(1,8)", "f=[x,y]", 'g="a,b"'])
    assert space.axes == (
        Choice("a.b", ("1", "2")),
        Range("c", "log", 1e-4, 1e-2),
        Range("e", "int", 1, 8),
    )
    assert space.fixed == ("d=3", "f=[x,y]", 'g="a,b"')
    assert space.size is None


def test_lists_in_brackets_are_values_of_a_choice():
    assert read_space(["units=[64,32],[128]"]).axes == (Choice("units", ("[64,32]", "[128]")),)


def test_a_grid_has_every_setting_once():
    space = read_space(["a=1,2", "b=x,y,x", "c=0"])
    assert space.size == 4
    assert [space.sets(params) for params in space.grid()] == [
        ("c=0", "a=1", "b=x"),
        ("c=0", "a=1", "b=y"),
        ("c=0", "a=2", "b=x"),
        ("c=0", "a=2", "b=y"),
    ]


def test_each_value_and_end_is_in_a_corner():
    corners = list(read_space(["a=1,2", "b=uniform(0,0.5)"]).corners())
    assert corners == [("a=1", "b=0"), ("a=2", "b=0"), ("a=1", "b=0.5")]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00001, "1.0e-05"), (0.000123456789, "0.000123457"), (3.0e20, "3.0e+20"), (0.5, "0.5")],
)
def test_a_number_of_a_range_is_a_number_in_yaml(value, text):
    from slipway.pipeline.config.safe_yaml import read_yaml

    assert Range("a", "uniform", 0, 1).text(value) == text
    assert isinstance(read_yaml(text, name="it").data, float)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([], "needs a key that varies"),
        (["a=1"], "needs a key that varies"),
        (["a=1,1"], "needs a key that varies"),
        (["a"], "must be KEY=VALUE"),
        (["=1,2"], "must be KEY=VALUE"),
        (["a=1,2", "a=3,4"], "--set a is given twice"),
        (["a=1", "a=2", "b=1,2"], "--set a is given twice"),
        (["a=1", "a=2,3"], "--set a is given twice"),
        (["a=uniform(1,1.0000001)"], "to 6 digits its ends are equal"),
        (["a=1,,2"], "a value between the commas is missing"),
        (["a=log(1)"], r"--set a=log\(1\): needs two numbers"),
        (["a=log(x,2)"], "needs two numbers"),
        (["a=uniform(2,1)"], "the first number must be below the second"),
        (["a=uniform(0,inf)"], "the first number must be below the second"),
        (["a=log(0,1)"], "a logarithmic range begins above 0"),
        (["a=int(0.5,2)"], "int takes whole numbers"),
    ],
)
def test_what_cannot_be_tried_is_refused(sets, message):
    with pytest.raises(UsageError, match=message):
        read_space(sets)


def test_equal_values_are_one():
    assert read_space(["a=128,128", "b=1,2"]).fixed == ("a=128",)
