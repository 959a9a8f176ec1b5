import numpy as np
import pytest

from slipway.components.saved_model.class_names import class_names, names_classes
from slipway.components.saved_model.signatures import Signature, TensorInfo


def _answers(*shapes):
    return Signature({}, {str(index): TensorInfo("float", shape) for index, shape in enumerate(shapes)})


@pytest.mark.parametrize(
    ("classes", "signature", "fits"),
    [
        ("abc", _answers((None, 3)), True),
        ("ab", _answers((None, 1)), True),
        ("ab", _answers((None, 2)), True),
        ("abc", _answers((None, 4)), False),
        ("abc", _answers((None, 1)), False),
        ("a", _answers((None, 1)), False),
        ("", _answers((None, 1)), False),
        ("ab", _answers((None,)), False),
        ("ab", _answers(None), False),
        ("ab", _answers((None, 2), (None, 2)), False),
    ],
)
def test_names_belong_to_answers_of_their_number(classes, signature, fits):
    assert names_classes(tuple(classes), signature) == fits


def test_the_most_probable_class_is_named():
    answers = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [np.nan, 1.0, 0.0]])
    assert class_names(answers, ("a", "b", "c")) == ["b", "a", None]


def test_one_number_is_the_probability_of_the_second_class():
    assert class_names(np.array([[0.2], [0.5], [0.51]]), ("no", "yes")) == ["no", "no", "yes"]
