import numpy as np
import pytest

from slipway.components.saved_model.class_names import (
    class_names,
    classes_of,
    classes_of_answers,
    names_of_rows,
)
from slipway.components.saved_model.signatures import Signature, TensorInfo


def _answers(**shapes):
    return Signature({}, {name: TensorInfo("float", shape) for name, shape in shapes.items()})


@pytest.mark.parametrize(
    ("classes", "shape", "fits"),
    [
        ("abc", (None, 3), True),
        ("ab", (None, 1), True),
        ("ab", (None, 2), True),
        ("abc", (None, 4), False),
        ("abc", (None, 1), False),
        ("a", (None, 1), False),
        ("", (None, 1), False),
        ("ab", (None,), False),
        ("ab", None, False),
    ],
)
def test_names_belong_to_answers_of_their_number(classes, shape, fits):
    named = tuple(classes)
    assert classes_of_answers({"": named}, _answers(digit=shape)) == ({"digit": named} if fits else {})
    several = classes_of_answers({"tip": named}, _answers(tip=shape, cost=(None, 1)))
    assert several == ({"tip": named} if fits else {})


def test_output_of_texts_has_no_other_names():
    texts = Signature({}, {"tip": TensorInfo("string", (None, 1))})
    assert classes_of_answers({"": ("no", "yes")}, texts) == {}


def test_names_of_one_output_are_not_those_of_several_nor_the_other_way_round():
    names = ("no", "yes")
    assert classes_of_answers({"": names}, _answers(tip=(None, 1), cost=(None, 1))) == {}
    assert classes_of_answers({"tip": names}, _answers(tip=(None, 1))) == {}
    assert classes_of_answers({"gone": names}, _answers(tip=(None, 1), cost=(None, 1))) == {}


def test_a_manifest_has_names_of_the_only_output_or_of_some_of_several():
    assert classes_of({"classes": ["no", "yes"]}) == {"": ("no", "yes")}
    several = {"tip": ["no", "yes"], "cost": [], "paid": [1, 2], "day": "ab"}
    assert classes_of({"output_classes": several}) == {"tip": ("no", "yes")}
    assert classes_of({"output_classes": [several]}) == {}


def test_the_most_probable_class_is_named():
    answers = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [np.nan, 1.0, 0.0]])
    assert class_names(answers, ("a", "b", "c")) == ["b", "a", None]


def test_one_number_is_the_probability_of_the_second_class():
    assert class_names(np.array([[0.2], [0.5], [0.51]]), ("no", "yes")) == ["no", "no", "yes"]


def test_names_of_a_row_are_by_output_if_there_are_several():
    assert names_of_rows({"tip": ["no", None]}, has_one_output=True) == ["no", None]
    assert names_of_rows({"tip": ["no", None]}, has_one_output=False) == [{"tip": "no"}, {"tip": None}]
    both = names_of_rows({"tip": ["no", "yes"], "day": ["Mon", "Sun"]}, has_one_output=False)
    assert both == [{"tip": "no", "day": "Mon"}, {"tip": "yes", "day": "Sun"}]
