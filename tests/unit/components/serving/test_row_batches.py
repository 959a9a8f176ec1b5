import numpy as np
import pytest

from slipway.components.saved_model.signatures import Signature, TensorInfo
from slipway.components.serving import row_batches
from slipway.components.serving.request_decoding import RequestError


class _Model:
    """Doubles a column, and notes how many rows each call has."""

    def __init__(self, *, takes=(None, 1), gives=(None, 1)):
        self.signatures = {
            "s": Signature({"x": TensorInfo("float", takes)}, {"y": TensorInfo("float", gives)})
        }
        self.rows = []

    def call(self, signature, inputs):
        self.rows.append(len(inputs["x"]))
        return {"y": 2 * inputs["x"]}


@pytest.fixture(autouse=True)
def two_at_once(monkeypatch):
    monkeypatch.setattr(row_batches, "ROWS_AT_ONCE", 2)


@pytest.mark.parametrize(("rows", "calls"), [(1, [1]), (2, [2]), (5, [2, 2, 1])])
def test_a_model_is_called_with_a_few_rows_at_a_time_and_answers_all_of_them(rows, calls):
    model = _Model()
    column = np.arange(rows, dtype=float)[:, None]
    answers = row_batches.call_in_batches(model, "s", {"x": column})
    assert (answers["y"].tolist(), model.rows) == ((2 * column).tolist(), calls)


@pytest.mark.parametrize(
    "shapes",
    [
        {"takes": (5, 1)},
        {"takes": None},
        {"takes": ()},
        {"gives": (1,)},
        {"gives": None},
        {"gives": ()},
        {"gives": (None, None)},
    ],
    ids=str,
)
def test_a_signature_that_need_not_answer_row_by_row_is_called_once(shapes):
    model = _Model(**shapes)
    row_batches.call_in_batches(model, "s", {"x": np.zeros([5, 1])})
    assert model.rows == [5]


def test_a_model_that_answers_about_all_rows_is_given_them_all():
    """Its signature does not tell: [None] may be as many values as rows, or as distinct ones."""

    class Distinct(_Model):
        def call(self, signature, inputs):
            return {"y": np.unique(super().call(signature, inputs)["y"])[:, None]}

    column = np.ones([5, 1])
    answers = row_batches.call_in_batches(Distinct(), "s", {"x": column})
    assert answers["y"].tolist() == [[2]]


def test_a_request_that_takes_too_long_ends_between_two_calls(monkeypatch):
    class Slow(_Model):
        def call(self, signature, inputs):
            now[0] += 40
            return super().call(signature, inputs)

    now = [0.0]
    monkeypatch.setattr(row_batches.time, "monotonic", lambda: now[0])
    model = Slow()
    with pytest.raises(RequestError, match="answered 4 of 7 rows in 60 s") as raised:
        row_batches.call_in_batches(model, "s", {"x": np.zeros([7, 1])})
    assert (raised.value.status, model.rows) == (413, [2, 2])
    assert len(row_batches.call_in_batches(model, "s", {"x": np.zeros([4, 1])})["y"]) == 4, "it is done"
