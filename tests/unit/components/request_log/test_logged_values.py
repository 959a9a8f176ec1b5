import numpy as np
import pytest

from slipway.components.ingest.example_message import MESSAGES as EXAMPLE_MESSAGES
from slipway.components.request_log.logged_values import answers_of, rows_of, rows_of_examples


def example(**columns):
    made = EXAMPLE_MESSAGES["Example"]()
    for name, values in columns.items():
        feature = made.features.feature[name]
        kind = {float: "float_list", int: "int64_list", bytes: "bytes_list"}[type(values[0])]
        getattr(feature, kind).value.extend(values)
    return made.SerializeToString()


def objects(*cells):
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


def test_named_columns_are_taken_and_no_other():
    inputs = {"fare": np.float32([[1.5], [np.nan]]), "secret": objects(b"a", b"b").reshape(2, 1)}
    assert list(rows_of(inputs, ["fare"])) == [{"fare": 1.5}, {"fare": None}]


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (np.int64([[7], [-(2**63)]]), [7, None]),
        (objects(b"Flash", b"").reshape(2, 1), ["Flash", None]),
        (objects("Müller".encode(), b"\xff\xd8").reshape(2, 1), ["Müller", None]),  # an image is no text
        (objects(b"a", b"b", b"c", b"").reshape(2, 2), [["a", "b"], ["c"]]),
        (objects(b"a", b"", b"c", b"", b"", b"").reshape(2, 3), [["a", "", "c"], []]),  # the end is padding
        (np.int64([[1, -(2**63), 3], [4, -(2**63), -(2**63)]]), [[1, -(2**63), 3], [4]]),
        (np.float32([1, 2]), [1.0, 2.0]),
    ],
)
def test_cell_becomes_a_plain_value(array, values):
    assert [row["x"] for row in rows_of({"x": array, "y": np.zeros(2)}, ["x"])] == values


def test_column_that_the_request_lacks_has_no_value():
    assert list(rows_of({"fare": np.zeros((1, 1))}, ["fare", "tips"])) == [{"fare": 0.0, "tips": None}]


def test_serialized_examples_are_looked_into():
    records = [example(fare=[1.5], company=[b"Flash"], secret=[b"x"]), example(tags=[b"a", b"b"]), b"\xff"]
    rows = [
        {"fare": 1.5, "company": "Flash", "tags": None},
        {"fare": None, "company": None, "tags": ["a", "b"]},
        {"fare": None, "company": None, "tags": None},
    ]
    names = ["fare", "company", "tags"]
    assert list(rows_of({"examples": objects(*records)}, names)) == rows
    assert list(rows_of_examples(records, names)) == rows


def test_empty_text_is_the_value_of_a_column_that_has_one_in_every_row():
    """`compare` could not give the model such a row again if the log had no value for it."""
    inputs = {
        "a": objects(b"", b"x").reshape(2, 1),
        "two": objects(b"y", b"", b"", b"").reshape(2, 2),
        "n": np.float32([[1], [np.nan]]),
    }
    rows = [{"a": "", "two": ["y", ""], "n": 1.0}, {"a": "x", "two": ["", ""], "n": None}]
    assert list(rows_of(inputs, ["a", "two", "n"], needed=["a", "two", "n"])) == rows
    assert [row["a"] for row in rows_of(inputs, ["a"])] == [None, "x"]


def test_list_in_an_example_is_logged_as_a_whole():
    records = [example(tags=[b"a", b"", b"b", b""]), example(tags=[b""])]
    assert list(rows_of_examples(records, ["tags"])) == [{"tags": ["a", "", "b", ""]}, {"tags": ""}]


def test_answers_are_those_of_the_only_output_or_all_by_name():
    assert list(answers_of({"outputs": np.float32([[0.5], [1.0]])})) == [[0.5], [1.0]]
    two = {"a": np.int64([1, 2]), "b": objects(b"x", b"y")}
    assert list(answers_of(two)) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
