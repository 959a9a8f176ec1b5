import tracemalloc

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.evaluator import label_agreement
from slipway.components.evaluator.judged import Judged
from slipway.components.evaluator.label_agreement import LabelAgreement

CENTS = np.random.default_rng(5).gamma(2, 400, 4000)
MEDIAN, JUST_BEYOND_THE_MEDIAN, BEYOND_THE_MEDIAN = np.quantile(CENTS, [0.5, 0.509, 0.52])


def agreement(ours, theirs, *, answers=1, weights=None, of_classes=True, parts=3):
    """Compare labels in batches, of which the last comes from another process."""
    found, other = LabelAgreement(of_classes=of_classes), LabelAgreement(of_classes=of_classes)
    for place, part in enumerate(np.array_split(np.arange(len(ours)), parts)):
        into = other if place == parts - 1 else found
        candidate, baseline = (
            Judged(
                np.asarray(each, np.float32)[part].reshape(len(part), -1),
                np.zeros((len(part), answers)),
                None if weights is None else np.asarray(weights, float)[part],
            )
            for each in (ours, theirs)
        )
        into.add(candidate, baseline)
    found.merge(other)
    return found


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (
            CENTS / 100,
            CENTS,
            r"fare of the last blessed model is another .*: it is [\d.]+ in a row of the eval",
        ),
        (np.log1p(CENTS), CENTS, "where the candidate's is"),
        ((CENTS - 800) / 560, (CENTS - 800) / 640, "where the candidate's is"),
        (CENTS > 2400, CENTS > 2600, "it is 0 in a row .* candidate's is 1"),
        (CENTS > MEDIAN, CENTS > BEYOND_THE_MEDIAN, "where the candidate's is 1"),
        (np.round(CENTS), np.round(CENTS * 1.2), "where the candidate's is"),
        (CENTS > 800, CENTS > 1200, "it is 0 in a row of the eval split where the candidate's is 1"),
        (CENTS > 800, CENTS <= 800, "where the candidate's is"),
        (
            np.full(9, 2.0),
            np.full(9, 3.0),
            "it is 3 in a row .* candidate's is 2; the two cannot be compared$",
        ),
        (np.zeros((6, 2)), np.zeros((6, 3)), "it has 3 numbers in a row, and the candidate's 2"),
    ],
)
def test_label_in_another_unit_or_of_another_rule_is_another_label(ours, theirs, words):
    with pytest.raises(ComponentError, match=words) as told:
        agreement(ours, theirs).require("fare")
    assert told.value.hint == "", "the screen names the command that clears the baseline"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (CENTS, CENTS),
        (CENTS.astype(np.float32), CENTS),
        (CENTS > MEDIAN, CENTS > JUST_BEYOND_THE_MEDIAN),
        ((CENTS - 800) / 560, (CENTS - 812) / 571),
        ((CENTS - 800) / 560, (CENTS - 1000) / 600),
        (np.where(CENTS > 900, np.nan, CENTS), CENTS),
        (np.full(9, 0.1, np.float32), np.full(9, 0.1)),
        (np.full(3, np.nan), np.zeros(3)),
        (CENTS * 1e300, CENTS * 1e300),
    ],
)
def test_label_that_is_rounded_or_scaled_by_new_data_is_the_same(ours, theirs):
    with np.errstate(over="ignore"):
        agreement(ours, theirs).require("fare")


def test_label_of_a_row_that_weighs_nothing_is_not_compared():
    ours, theirs = [1.0, 0.0, 5.0, 1.0], [1.0, 0.0, -9.0, 1.0]
    agreement(ours, theirs, weights=[1, 2, 0, 1]).require("fare")
    with pytest.raises(ComponentError, match="another label"):
        agreement(ours, theirs).require("fare")


CLASSES = np.arange(900) % 3


def one_hot(classes, many):
    return np.eye(many)[np.asarray(classes, int)]


def test_classes_may_have_other_numbers_and_be_one_hot():
    """A vocabulary numbers its classes by how frequent they are in its data."""
    others = np.array([2, 0, 1])[CLASSES]
    agreement(CLASSES, others, answers=3).require("genre")
    agreement(one_hot(CLASSES, 3), others, answers=3).require("genre")
    rare = np.where(np.arange(900) < 8, 3, CLASSES)  # new rows of a class that the old vocabulary lacks
    agreement(rare, others, answers=4).require("genre")


@pytest.mark.parametrize("theirs", [CLASSES // 2, np.zeros(900), (np.arange(900) + 1) // 2 % 3])
def test_classes_that_are_cut_otherwise_are_other_labels(theirs):
    with pytest.raises(
        ComponentError, match=r"\d\d\.\d% of the rows of the eval split are in no class that both"
    ):
        agreement(CLASSES, theirs, answers=3).require("genre")


def test_quantiles_have_numbers_for_labels_and_several_labels_are_compared_one_by_one():
    with pytest.raises(ComponentError, match="where the candidate's is"):
        agreement(CENTS, CENTS / 100, answers=3, of_classes=False).require("fare")
    several = np.stack([CENTS > 500, CENTS > 600], axis=1)
    agreement(several, several, answers=2).require("tags")
    with pytest.raises(ComponentError, match="another label"):
        agreement(several, several[:, ::-1], answers=2).require("tags")


def test_number_of_another_unit_is_seen_beside_larger_ones():
    """Each of several numbers of a row is compared on its own scale."""
    stars = CENTS % 5
    ours, theirs = (np.stack([1000 * CENTS, each], axis=1) for each in (stars, 2 * stars))
    agreement(ours, ours, answers=2).require("both")
    with pytest.raises(ComponentError, match="another label"):
        agreement(ours, theirs, answers=2).require("both")


@pytest.mark.parametrize("weights", [None, np.ones(64)])
def test_labels_as_large_as_images_are_compared_a_few_rows_at_a_time(monkeypatch, weights):
    # So wide that what NumPy takes for any sum, 100 KB, is little beside them.
    monkeypatch.setattr(label_agreement, "_MOST_CELLS", 8000)
    images = np.random.default_rng(2).random((64, 8000), np.float32)
    ours, theirs = (Judged(each, each, weights) for each in (images, images * 2))
    found = LabelAgreement(of_classes=True)
    tracemalloc.start()
    try:
        found.add(ours, theirs)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < images.nbytes, "before, eight times the labels as float64"
    with pytest.raises(ComponentError, match="in a row of the eval split where the candidate's is"):
        found.require("image")


@pytest.mark.parametrize("cells", [1, 7, 10**6])
def test_labels_agree_or_not_however_many_rows_are_compared_at_once(monkeypatch, cells):
    monkeypatch.setattr(label_agreement, "_MOST_CELLS", cells)
    agreement(CENTS[:90], CENTS[:90]).require("fare")
    one_hot = np.eye(3)[np.arange(90) % 3]
    agreement(one_hot, one_hot[:, ::-1], answers=3).require("class")
    for ours, theirs, answers in ((CENTS[:90], CENTS[:90] / 100, 1), (one_hot, one_hot[::2].repeat(2, 0), 3)):
        with pytest.raises(ComponentError, match="another label"):
            agreement(ours, theirs, answers=answers).require("fare")
