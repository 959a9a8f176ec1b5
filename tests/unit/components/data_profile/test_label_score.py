"""Labels that lost their connection with the other columns."""

import numpy as np
import pytest

from slipway.components.data_profile.label_score import label_score
from slipway.components.data_profile.single_scores import single_scores

ROWS = 4000


def trips(seed, *, rows=ROWS):
    """A category and a number that tell most of the label, and one that tells nothing."""
    rng = np.random.default_rng(seed)
    pays = rng.choice(["cash", "card", "other"], size=rows, p=[0.6, 0.35, 0.05]).astype(object)
    fare = rng.lognormal(2, 0.6, rows)
    tip = np.where(pays == "card", fare * rng.normal(0.2, 0.05, rows), 0.0).clip(0)
    return {"pays": pays, "fare": fare, "noise": rng.normal(size=rows), "tip": tip}


def classes(sample):
    """The same with a label of two classes: whether there is a tip above 2."""
    return {**sample, "tip": (sample["tip"] > 2).astype(float)}


def flipped(sample, share, seed=99):
    """The same with a share of the labels turned round."""
    rng = np.random.default_rng(seed)
    wrong, tip = rng.random(len(sample["tip"])) < share, sample["tip"]
    turned = 1 - tip if set(np.unique(tip)) == {0.0, 1.0} else np.where(tip > 0, 0.0, 0.3 * sample["fare"])
    return {**sample, "tip": np.where(wrong, turned, tip)}


def score(sample):
    return label_score(sample, "tip", single_scores(sample, "tip"))


@pytest.mark.parametrize("kind", [dict, classes])
def test_one_flipped_label_in_twenty_costs_more_than_a_tenth_of_the_score(kind):
    then, now = score(kind(trips(0))), score(flipped(kind(trips(1)), 0.05))
    assert now.score < 0.9 * then.score - 4 * np.hypot(now.error, then.error)


@pytest.mark.parametrize("kind", [dict, classes])
@pytest.mark.parametrize("seed", range(10))
def test_other_rows_of_the_same_kind_score_alike(kind, seed):
    then, now = score(kind(trips(seed + 100))), score(kind(trips(seed)))
    assert now.score > 0.99 * then.score - 4 * np.hypot(now.error, then.error)


@pytest.mark.parametrize("many", [2, 3])
def test_a_rare_class_written_as_a_number_is_told_apart_as_one_of_text_is(many):
    rng = np.random.default_rng(4)
    rare = (rng.random(ROWS) < 0.03).astype(int) * (many - 1)
    label = np.where(rare > 0, rare, rng.integers(0, many - 1, ROWS))
    sample = {"sign": rare + 0.3 * rng.normal(size=ROWS), "noise": rng.normal(size=ROWS)}
    as_number, as_text = (
        score({**sample, "tip": tip}) for tip in (label * 1.0, label.astype(str).astype(object))
    )
    assert as_number.score == pytest.approx(as_text.score, abs=1e-6)
    assert as_number.score > 0.01


def test_shuffled_labels_explain_nothing():
    sample = trips(0)
    mixed = {**sample, "tip": np.random.default_rng(1).permutation(sample["tip"])}
    assert abs(score(mixed).score) < 5 * score(mixed).error


def test_error_is_what_scores_of_other_samples_differ_by():
    found = [score(classes(trips(seed, rows=2000))) for seed in range(20)]
    spread = np.std([each.score for each in found])
    assert spread == pytest.approx(np.mean([each.error for each in found]), rel=0.5)


def test_name_for_each_row_explains_nothing():
    sample = trips(0)
    names = np.array([f"trip {number}" for number in range(ROWS)], dtype=object)
    assert score({"name": names, "tip": sample["tip"]}).score < 0.01


@pytest.mark.parametrize("label", ["tip", "gone"])
def test_few_rows_a_constant_or_no_label_tell_nothing(label):
    assert label_score(trips(0, rows=400), label, {"pays": 0.5}) is None
    assert label_score({**trips(0), "tip": np.ones(ROWS)}, label, {"pays": 0.5}) is None
    assert label_score(trips(0), label, {}) is None


def test_rows_without_a_label_are_left_out():
    sample = trips(0)
    gaps = {**sample, "tip": np.where(np.arange(ROWS) % 3 == 0, np.nan, sample["tip"])}
    assert score(gaps).score == pytest.approx(score(sample).score, abs=0.05)
