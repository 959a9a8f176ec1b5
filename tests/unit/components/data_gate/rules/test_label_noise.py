"""Labels that the other columns tell less well than before."""

import numpy as np
import pytest

from slipway.components.data_gate.finding import Finding
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.label_noise import find_label_noise
from slipway.components.data_profile.label_score import LabelScore


def noise(now, then, *, error=0.01, **limits):
    found = find_label_noise(LabelScore(now, error), LabelScore(then, error), "tips", Limits(**limits))
    return list(found)


@pytest.mark.parametrize(
    ("now", "then", "error", "is_found"),
    [
        (0.71, 0.89, 0.005, True),  # taxi with one label in twenty flipped
        (0.89, 0.89, 0.005, False),
        (0.95, 0.89, 0.005, False),
        (0.82, 0.89, 0.001, False),  # within the limit of a tenth
        (0.79, 0.89, 0.001, True),
        (0.79, 0.89, 0.01, False),  # chance may have done it
        (0.40, 0.89, 0.05, True),
        (0.0, 0.02, 0.01, False),  # there was nothing to lose
        (-0.5, 0.0, 0.01, False),
        (-0.5, -0.1, 0.01, False),
    ],
)
def test_score_that_surely_fell_by_more_than_a_tenth_is_found(now, then, error, is_found):
    assert bool(noise(now, then, error=error)) == is_found


@pytest.mark.parametrize(
    ("now", "then", "is_found"), [(0.0, 0.0, True), (0.01, 0.0, False), (0.0, 0.01, False)]
)
def test_chance_is_that_of_both_scores(now, then, is_found):
    found = find_label_noise(LabelScore(0.79, now), LabelScore(0.89, then), "tips", Limits())
    assert bool(list(found)) is is_found


def test_finding_says_both_scores_and_which_limit_would_let_it_pass():
    [finding] = noise(0.70, 0.90)
    assert finding.headline == (
        "tips: the other columns explain 70% of it, 90% in the reference, 22.22% less: labels are wrong, "
        "or mixed up; limit 0.1"
    )
    assert finding.key == "data_gate.max_label_score_drop"
    assert finding.remedy.endswith("raise data_gate.max_label_score_drop above 0.222")
    assert not noise(0.70, 0.90, max_label_score_drop=0.2223)


def test_labels_that_nothing_explains_any_more_have_lost_all_and_the_advice_is_a_limit_that_there_is():
    [finding] = noise(-0.06, 0.18)
    assert "explain 0.00% of it, 18% in the reference, 100% less" in finding.headline
    assert finding.remedy.endswith("set data_gate.max_label_score_drop to 1, which lets any difference pass")
    assert not noise(-0.06, 0.18, max_label_score_drop=1.0)


def test_rows_whose_labels_are_farthest_from_what_the_others_say_are_asked_for():
    rng = np.random.default_rng(0)
    told = rng.random(2000) < 0.5
    label = np.where(told, 1.0, 0.0)
    wrong = [3, 500, 1999]
    label[wrong] = 1 - label[wrong]
    sample = {
        "card": np.where(told, "Card", "Cash").astype(object),
        "n": rng.normal(size=2000),
        "tips": label,
    }
    scores = {"card": 0.99, "n": 0.0}
    low, high = LabelScore(0.5, 0.01), LabelScore(0.9, 0.01)
    [finding] = find_label_noise(low, high, "tips", Limits(), sample=sample, single=scores)
    assert (finding.query.column, finding.query.beside) == ("tips", "card")
    asked = [(row["card"], row["tips"], row["n"]) for row in finding.query.like]
    assert len(asked) == 5
    assert {(sample["card"][row], label[row], sample["n"][row]) for row in wrong} <= set(asked)


def test_nothing_is_compared_where_one_score_is_unknown():
    known = LabelScore(0.9, 0.01)
    assert not list(find_label_noise(LabelScore(0.1, 0.01), None, "tips", Limits()))
    assert not list(find_label_noise(None, known, "tips", Limits()))


def test_lost_connection_is_reported_whole():
    assert noise(0.7, 0.9) == [
        Finding(
            "label",
            "tips",
            (),
            (
                "the other columns explain 70% of it, 90% in the reference, 22.22% less: labels are "
                "wrong, or mixed up"
            ),
            measured=pytest.approx(0.222222222),
            limit=0.1,
            key="data_gate.max_label_score_drop",
            remedy=(
                "check where these labels come from; if they are right, raise "
                "data_gate.max_label_score_drop above 0.222"
            ),
        )
    ]
