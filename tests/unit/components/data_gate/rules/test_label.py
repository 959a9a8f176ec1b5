"""The label."""

import numpy as np
import pytest

from components.data_gate.limits import Limits
from components.data_gate.rules.label import find_label_faults

RNG = np.random.default_rng(0)
BEGIN = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def drawn_from_the_begin():
    """What a test draws does not hang on those before it."""
    RNG.bit_generator.state = BEGIN


def faults(split, train, *, evaluate=None, before=None, limits=None, rows=None):
    statistics = {"train": split(rows, y=train)}
    if evaluate is not None:
        statistics["eval"] = split(y=evaluate)
    reference = {"train": split(y=before)} if before is not None else {}
    return list(find_label_faults(statistics, reference, "y", limits or Limits()))


def binary(share, rows=10_000):
    return np.arange(rows) < share * rows


def test_label_that_no_split_has_is_found(split):
    [finding] = find_label_faults({"train": split(x=[1.0])}, {}, "y", Limits())
    assert finding.headline == "y: no split has this column"


@pytest.mark.parametrize(("limit", "is_found"), [(0.0, True), (0.05, True), (0.1, False)])
def test_missing_labels_are_held_against_their_limit(split, limit, is_found):
    limits = Limits(max_label_missing_share=limit)
    assert bool(faults(split, {"a": 50, "b": 40}, rows=100, limits=limits)) == is_found


def test_a_label_that_each_row_needs_is_missed_whatever_the_limit(split):
    statistics = {"train": split(100, y={"a": 50, "b": 49})}
    limits = Limits(max_label_missing_share=1.0)
    [finding] = find_label_faults(statistics, {}, "y", limits, is_needed=True)
    assert finding.is_final
    assert "data.unlabelled_rows: leave_out" in finding.remedy
    [other] = find_label_faults(statistics, {}, "y", Limits())
    assert not other.is_final
    assert "data.unlabelled_rows: leave_out" in other.remedy


@pytest.mark.parametrize(
    ("labelled", "words"), [(99, "1 of 100 rows (1%) has no"), (98, "2 of 100 rows (2%) have no")]
)
def test_missing_labels_are_counted_in_words_that_agree(split, labelled, words):
    [finding] = faults(split, {"a": labelled - 40, "b": 40}, rows=100)
    assert words in finding.what.replace(".00%", "%")


@pytest.mark.parametrize("values", [[0] * 100, [2.5] * 100, {"no": 100}])
def test_constant_label_is_found_and_nothing_else_about_it(split, values):
    [finding] = faults(split, values, before=[1, 2, 3] * 100 if isinstance(values, list) else {"yes": 9})
    assert "there is nothing to learn" in finding.what


@pytest.mark.parametrize(
    ("now", "then", "is_found"),
    [(0.22, 0.22, False), (0.25, 0.22, False), (0.35, 0.22, True), (0.1, 0.22, True), (0.5, 0.1, True)],
)
def test_share_of_a_binary_label_is_held_against_the_reference(split, now, then, is_found):
    findings = faults(split, binary(now), before=binary(then))
    assert bool(findings) == is_found
    if is_found:
        assert findings[0].measured == pytest.approx(abs(now - then))


def test_share_of_a_class_is_held_against_the_reference(split):
    [finding] = faults(split, {"a": 800, "b": 200}, before={"a": 500, "b": 500})
    assert finding.what == '"a" is 800 of 1,000 labels (80%), 50% in the reference'


def test_numbers_that_moved_are_found(split):
    then = RNG.normal(10, 2, 10_000)
    assert not faults(split, then[:5000], before=then)
    [finding] = faults(split, then + 3, before=then)
    assert finding.what.startswith(
        "the mean is 13.01, 10.01 in the reference; about 1,000 of 10,000 values (10.00%) lie from 14.78"
    )


def test_label_must_be_alike_in_every_split(split):
    [finding] = faults(split, binary(0.2), evaluate=binary(0.4))
    assert finding.splits == ("eval",)
    assert "in train" in finding.what


@pytest.mark.parametrize("seed", range(20))
def test_random_splits_have_like_labels(split, seed):
    rng = np.random.default_rng(seed)
    for values in (rng.random(150) < 0.3, rng.lognormal(size=600), rng.integers(0, 10, 300)):
        cut = len(values) * 2 // 3
        assert not faults(split, values[:cut], evaluate=values[cut:])
