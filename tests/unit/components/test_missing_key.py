"""A KeyError of somebody's code is told with what there is."""

import pytest

from slipway.components.missing_key import missing_key

TRIP = {"company": "a", "fare": 5.0, "tips": 1.0}


def ask_for(inputs, name):
    return inputs[name]


def caught(call, *arguments):
    with pytest.raises(KeyError) as found:
        call(*arguments)
    return found.value


def nested(inputs):
    return inputs["company"]["name"]


def two_at_once(ä, b):
    return (ä["fare"], b[
        "fares"
    ])  # fmt: skip


def in_a_comprehension(names, inputs):
    return [inputs[name] for name in names]


def test_the_column_the_nearest_and_those_there_are_reported():
    missing = missing_key(caught(ask_for, TRIP, "fares"))
    assert missing.words == "inputs has no 'fares'; nearest: 'fare'"
    assert missing.there == "inputs has company, fare, tips"


def test_where_nothing_is_near_none_is_named():
    assert missing_key(caught(ask_for, TRIP, "colour")).words == "inputs has no 'colour'"
    assert missing_key(caught(ask_for, {}, "colour")).there == "inputs has nothing"


def test_of_many_names_some_are_shown():
    missing = missing_key(caught(ask_for, {f"x{number}": 0 for number in range(200)}, "y"))
    assert missing.there.startswith("inputs has x0, x1, ")
    assert missing.there.endswith(", x39 and 160 more")


@pytest.mark.parametrize(
    ("call", "holder"),
    [
        (lambda: two_at_once(TRIP, TRIP), "b"),
        (lambda: in_a_comprehension(["fares"], TRIP), "inputs"),
        (lambda: dict(TRIP).pop("fares"), None),
        (lambda: TRIP["fares"], "TRIP"),
    ],
)
def test_the_mapping_is_the_one_that_was_asked(call, holder):
    missing = missing_key(caught(call))
    assert (missing and missing.holder) == holder


def raised_by_hand():
    raise KeyError("fares")


@pytest.mark.parametrize("call", [raised_by_hand, lambda: nested({"company": {}}), lambda: {1: 2}[3]])
def test_what_is_no_such_error_is_left_as_it_is(call):
    assert missing_key(caught(call)) is None


def test_another_error_is_none():
    assert missing_key(ValueError("fares")) is None
    assert missing_key(KeyError("fares")) is None
