import json
import math
import random

import pytest

from slipway.components.model_gate.prediction_counts import CELLS, GROUPS, PredictionCounts, least


def counted(rows):
    predictions = PredictionCounts()
    for label, prediction in rows:
        predictions.add(label, prediction)
    return predictions


def test_labels_zero_and_one_with_probabilities_are_binary():
    told = counted([([0.0], [0.2]), ([1.0], [0.2]), ([1.0], [0.9])]).to_json()

    assert told == {
        "kind": "binary",
        "groups": [[0.2, 2, 1.0, 1.0, 0.4], [0.9, 1, 1.0, 1.0, 0.9]],
        "rows": 3,
        "not_finite": 0,
    }


@pytest.mark.parametrize(("label", "prediction"), [(2.0, 0.5), (1.0, 1.5), (0.0, -0.1)])
def test_any_other_number_makes_it_a_number(label, prediction):
    assert counted([([1.0], [0.9]), ([label], [prediction])]).to_json()["kind"] == "numbers"


def test_of_several_outputs_the_largest_is_the_answer_for_classes_and_one_hot_labels():
    told = counted([([2.0], [0.1, 0.2, 0.7]), ([0.0, 1.0, 0.0], [0.5, 0.4, 0.1])]).to_json()

    assert (told["kind"], told["cells"]) == ("classes", [[1, 0, 1], [2, 2, 1]])


def test_several_classes_at_once_are_not_told():
    assert counted([([1.0, 1.0, 0.0], [0.1, 0.2, 0.7])]).to_json() == {}
    assert counted([([3.0], [0.1, 0.2, 0.7])]).to_json() == {}
    assert counted([]).to_json() == {}


def test_rows_without_a_finite_answer_are_counted_apart():
    told = counted([([1.0], [float("nan")]), ([1.0], [0.5])]).to_json()

    assert (told["rows"], told["not_finite"]) == (1, 1)
    nothing_else = counted([([1.0], [float("nan")]), ([0.0], [float("inf")])]).to_json()
    assert nothing_else == {"rows": 0, "not_finite": 2}
    of_vectors = counted([([1.0, 1.0], [0.1, float("nan")]), ([1.0, 1.0], [0.1, 0.2])]).to_json()
    assert of_vectors == {"rows": 0, "not_finite": 1}


def test_row_that_weighs_nothing_counts_only_if_its_answer_is_not_finite():
    some = PredictionCounts()
    some.add([-1.0], [0.5], weight=0.0)
    assert some.to_json() == {}
    some.add([-1.0], [math.nan], weight=0.0)
    some.add([1.0], [0.5], weight=0.25)
    assert (some.to_json()["kind"], some.to_json()["rows"], some.not_finite) == ("binary", 1, 1)


def test_parts_add_up_to_the_whole_however_they_are_divided():
    chance = random.Random(1)  # noqa: S311 (a sample, no secret)
    rows = [([float(chance.random() < 0.3)], [chance.random()]) for _ in range(20_000)]
    whole = counted(rows)
    parts = [counted(rows[at : at + 3000]) for at in range(0, len(rows), 3000)]
    merged = PredictionCounts()
    for part in reversed(parts):
        merged.merge(part)

    assert whole.is_rounded
    assert not parts[-1].is_rounded
    ours, theirs = (json.loads(json.dumps(each.to_json()))["groups"] for each in (whole, merged))
    assert [group[:4] for group in ours] == [group[:4] for group in theirs]
    assert len(ours) <= 2 * GROUPS


def test_what_was_rounded_before_parts_were_added_is_not_rounded_again():
    chance = random.Random(2)  # noqa: S311
    rows = [([0.0], [chance.random()]) for _ in range(9000)]
    one, other = counted(rows[:5000]), counted(rows[5000:])
    assert any(least(prediction) != prediction for prediction in one.groups), "or this would test nothing"
    one.merge(other)
    merged = PredictionCounts()
    merged.merge(one)
    assert set(merged.groups) == set(one.groups) == set(counted(rows).groups)


def test_no_group_reaches_over_a_threshold_that_is_told_of():
    chance = random.Random(2)  # noqa: S311 (a sample, no secret)
    rows = [([float(chance.random() < 0.3)], [chance.random() ** 3]) for _ in range(20_000)]
    groups = counted(rows).to_json()["groups"]

    for threshold in (0.05, 0.5, 0.75):
        exact = sum(prediction[0] >= threshold for _, prediction in rows)
        assert sum(group[1] for group in groups if group[0] >= threshold) == exact


def test_answers_of_a_sure_model_stay_apart_near_both_ends():
    assert least(0.00012345) == pytest.approx(0.000123)
    assert least(1 - 0.00012345) == pytest.approx(1 - 0.000124)
    assert all(least(value) <= value for value in (0.4999, 0.5001, 0.99, 12.345, -12.345, 0.0, 1.0))
    assert least(-12.345) == pytest.approx(-12.4)


def test_a_matrix_of_many_classes_is_cut_and_the_rest_is_counted():
    told = counted(
        ([float(n // 60)], [float(k == n % 60) for k in range(60)]) for n in range(CELLS + 10)
    ).to_json()

    assert (len(told["cells"]), told["left_out"], told["rows"]) == (CELLS, 10, CELLS + 10)
    # Of the classes nothing is cut: their rows, the right ones, and how often they are the answer.
    assert told["by_class"] == [*([k, 60, 1, 42] for k in range(41)), [41, 50, 1, 42]]
    assert told["more_classes"] == 0


def test_answers_that_are_no_probability_are_told_whatever_else_is():
    counts = PredictionCounts(outside=3)
    assert counts.to_json() == {"rows": 0, "not_finite": 0, "outside": 3}
    counts.add([1.0], [0.5])
    counts.merge(PredictionCounts(outside=1))
    assert (counts.to_json()["rows"], counts.to_json()["outside"]) == (1, 4)
