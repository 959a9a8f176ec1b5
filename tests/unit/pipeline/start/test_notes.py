import numpy as np
import pytest

from slipway.pipeline.start.notes import totals_note

SOLD = np.arange(1.0, 40.0)


def _with_last(last):
    return {"shop": np.array(["A"] * 40, dtype=object), "sold": np.append(SOLD, last)}


@pytest.mark.parametrize("last", [SOLD.sum(), SOLD.sum() + 0.004])
def test_a_last_row_of_totals_is_told(last):
    assert (
        "The last row is a total: its sold is the sum of the rows above." in totals_note(_with_last(last))[0]
    )


def test_all_totals_are_named_and_empty_cells_passed_over():
    columns = {"sold": np.append(SOLD, SOLD.sum()), "left": np.array([np.nan, *SOLD[1:], SOLD[1:].sum()])}
    assert "its sold and left are the sums of the rows above" in totals_note(columns)[0]


@pytest.mark.parametrize("last", [7.0, np.nan, 0.0, SOLD.sum() + 1])
def test_other_last_rows_are_rows(last):
    assert totals_note(_with_last(last)) == []


@pytest.mark.parametrize("values", [[0.0] * 40, [*[0.0] * 38, 5.0, 5.0], [np.nan] * 40, [1.0, 2.0, 3.0]])
def test_zeros_and_few_rows_are_no_total(values):
    assert totals_note({"sold": np.array(values)}) == []
