"""Which columns a file of the input lacks, and what is said of it."""

import pytest

from slipway.components.predictor.input_columns import InputColumns, InputError

COLUMNS = InputColumns(("Area m²", "rooms", "city"), needed=("rooms",), known=("price",))


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (("city", "more", "rooms", "Area m²"), {}),
        (("Area m2", "rooms", "city"), {"Area m²": "Area m2"}),
        (("AREA M²", "rooms", "city"), {"Area m²": "AREA M²"}),
        (("price",), {"Area m²": "", "rooms": "", "city": ""}),
    ],
)
def test_each_column_that_the_model_takes_must_be_there(names, missing):
    assert COLUMNS.missing(names) == missing


def test_name_that_the_training_knows_is_no_misspelling_of_another():
    columns = InputColumns(("tip_rate", "tip_time"), known=("tip_rates",))
    assert columns.missing(("tip_rates", "tip_time")) == {"tip_rate": ""}


def test_column_that_may_be_empty_is_to_be_renamed_or_added_empty():
    error = COLUMNS.error("rows.csv", {"Area m²": "Area m2"})
    assert isinstance(error, InputError)
    assert error.message == "rows.csv lacks a column that the model needs: Area m² (nearest: Area m2)."
    assert error.hint == (
        "a file must have each column that the model was trained on; rename the columns of the file, "
        "or, if it is unknown for every row, add the column and leave it empty"
    )


def test_column_that_no_row_may_lack_is_not_to_be_left_empty():
    assert COLUMNS.error("rows.csv", {"rooms": ""}).hint.endswith("of the file: no row may lack rooms")
    assert COLUMNS.error("rows.csv", {"rooms": "", "city": ""}).hint.endswith(
        "no row may lack rooms; add any other that is unknown for every row, and leave it empty"
    )
    assert list(COLUMNS.missing(())) == ["rooms", "Area m²", "city"]


def test_many_columns_are_reported_in_short_and_another_remedy_in_place_of_the_own():
    error = InputColumns(tuple("abcdefg")).error("x", dict.fromkeys("abcdefg", ""), hint="do that")
    assert error.message == "x lacks columns that the model needs: a, b, c, d, e and 2 more."
    assert error.hint == "do that"
