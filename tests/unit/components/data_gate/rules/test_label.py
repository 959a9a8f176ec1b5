"""The label."""

from dataclasses import replace

import numpy as np
import pytest

from slipway.components.data_gate.finding import Finding, RowQuery
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.label import find_label_faults
from slipway.components.data_gate.statistics import SplitStatistics


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


def test_rows_of_which_none_has_a_label_yet_are_not_advised_to_be_left_out(split):
    for is_needed in (True, False):
        statistics = {"train": split(100, y={}, x=np.arange(100))}
        found = find_label_faults(statistics, {}, "y", Limits(), is_needed=is_needed)
        [remedy] = [finding.remedy for finding in found if "no label" in finding.what]
        assert remedy == "label these rows; if their labels come late, run again once they are there"


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


@pytest.mark.parametrize("kinds", [("float", "float"), ("float", "int"), ("int", "float")])
def test_binary_label_may_be_written_as_fractions(split, feature, kinds):
    """A column of 1.0 and 0.0, as after a gap, is the label that 1 and 0 are."""
    now, then = (
        replace(feature("y", binary(share)), kind=kind)
        for share, kind in zip((0.35, 0.22), kinds, strict=True)
    )
    [finding] = faults(split, now, before=then)
    assert finding.measured == pytest.approx(0.13)
    assert finding.what.endswith('"1" rose from 22% to 35%')


def test_shares_between_0_and_1_are_compared_as_numbers(split):
    [finding] = faults(split, np.linspace(0, 1, 1000), before=[0.0, 0.9, 1.0] * 300)
    assert finding.what.startswith("the mean is ")


def test_share_of_a_class_is_held_against_the_reference(split):
    [finding] = faults(split, {"a": 800, "b": 200}, before={"a": 500, "b": 500})
    assert finding.what == '"a" is 800 of 1,000 labels (80%), 50% in the reference'


@pytest.mark.parametrize(("rows", "let_pass"), [(10_000, 2741), (1000, 308)])
def test_class_may_move_by_its_limit_and_what_chance_reaches(split, rows, let_pass):
    before = {"a": 2000, "b": 8000}
    assert not faults(split, {"a": let_pass, "b": rows - let_pass}, before=before)
    assert faults(split, {"a": let_pass + 1, "b": rows - let_pass - 1}, before=before)


def test_class_that_is_new_or_gone_is_found(split):
    [new] = faults(split, {"a": 500, "b": 300, "c": 200}, before={"a": 600, "b": 400})
    assert new.what.startswith('"c" is 200 of 1,000 labels (20%), 0.00% in the reference')
    [gone] = faults(split, {"a": 600, "b": 400}, before={"a": 500, "b": 300, "c": 200})
    assert gone.what.startswith('"c" is 0 of 1,000 labels (0.00%), 20% in the reference')


@pytest.mark.parametrize("now", [[0, 1] * 300, [0, 2, 2] * 200])
def test_numbers_that_are_not_all_0_or_1_are_compared_as_numbers(split, now):
    [finding] = faults(split, now, before=[0, 0, 0, 1, 2] * 200)
    assert finding.what.startswith("the mean is ")


def test_label_without_any_value_is_missing_and_not_constant(split):
    [finding] = faults(split, [], rows=100)
    assert finding.what == "100 of 100 rows (100%) have no label"


def test_numbers_that_moved_are_found(split):
    then = np.random.default_rng(0).normal(10, 2, 10_000)
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


def test_missing_labels_are_reported_whole(split):
    empty = {"train": split(100, y={"a": 50, "b": 40})}
    assert list(find_label_faults(empty, {}, "y", Limits())) == [
        Finding(
            "label",
            "y",
            ("train",),
            "10 of 100 rows (10%) have no label",
            measured=0.1,
            limit=0.0,
            key="data_gate.max_label_missing_share",
            remedy=(
                "label these rows, or leave them out of training and evaluation: "
                "data.unlabelled_rows: leave_out; if preprocessing_fn handles them, set "
                "data_gate.max_label_missing_share above 0.1000"
            ),
            query=RowQuery("y", is_missing=True),
        )
    ]
    assert list(find_label_faults(empty, {}, "y", Limits(), is_needed=True)) == [
        Finding(
            "label",
            "y",
            ("train",),
            "10 of 100 rows (10%) have no label",
            measured=0.1,
            limit=0.0,
            remedy=(
                "label these rows, or leave them out of training and evaluation: "
                "data.unlabelled_rows: leave_out; the schema gives the label a shape, so rows "
                "without it cannot be read"
            ),
            query=RowQuery("y", is_missing=True),
            is_final=True,
        )
    ]
    assert list(find_label_faults({"train": split(x=[1.0])}, {}, "y", Limits())) == [
        Finding("label", "y", (), "no split has this column", remedy="data.label names the column")
    ]


def test_constant_label_is_reported_whole(split):
    assert faults(split, {"no": 100}, evaluate={"no": 50}) == [
        Finding(
            "label",
            "y",
            ("train", "eval"),
            'all 150 labels are "no": there is nothing to learn',
            remedy="check what fills this column, and data.label",
            query=RowQuery("y"),
        )
    ]
    assert faults(split, [2.5] * 100) == [
        Finding(
            "label",
            "y",
            ("train",),
            "all 100 labels are 2.5: there is nothing to learn",
            remedy="check what fills this column, and data.label",
            query=RowQuery("y"),
        )
    ]


@pytest.mark.parametrize(
    ("train", "evaluate", "expected"),
    [
        ([0] * 90 + [1] * 10, [0] * 50, [("eval", "all 50 labels are 0", "into train")]),
        ({"no": 90}, {"no": 50, "yes": 3}, [("train", 'all 90 labels are "no"', "into eval")]),
        (
            {"no": 90},
            {"yes": 50},
            [
                ("train", 'all 90 labels are "no"', "into eval"),
                ("eval", 'all 50 labels are "yes"', "into train"),
            ],
        ),
    ],
)
def test_split_that_got_one_label_only_is_reported_with_where_the_others_are(
    split, train, evaluate, expected
):
    found = faults(split, train, evaluate=evaluate)
    assert [each.splits for each in found] == [(name,) for name, *_ in expected]
    for each, (_, begin, end) in zip(found, expected, strict=True):
        assert each.what.startswith(begin)
        assert each.what.endswith(f"rows with another label all fell {end}")
        assert "data.split_by" in each.remedy


def test_finding_about_a_split_of_one_label_shows_the_rows_and_says_what_to_do(split):
    values = {"train": {"no": 90}, "eval": {"no": 50, "yes": 3}, "test": {"no": 9, "yes": 1}}
    found = find_label_faults({name: split(y=each) for name, each in values.items()}, {}, "y", Limits())
    assert list(found) == [
        Finding(
            rule="label",
            feature="y",
            splits=("train",),
            what='all 90 labels are "no"; rows with another label all fell into eval and test',
            remedy="split the rows differently, with data.split_by (as {row: true}) or data.split; or "
            "collect more rows of the other label",
            query=RowQuery("y"),
        )
    ]


def test_only_splits_that_hold_another_label_are_named_for_one_that_got_a_single_one(split):
    values = {"train": {"no": 90}, "eval": {"no": 50, "yes": 3}, "test": {"no": 10}}
    found = find_label_faults({name: split(y=each) for name, each in values.items()}, {}, "y", Limits())
    assert [each.what.rpartition(" fell ")[2] for each in found] == ["into eval"] * 2


def test_labels_of_a_sample_are_reported_as_those_looked_at(split):
    def sampled(**counts):
        found = split(y=counts)
        of_sample = {"y": replace(found.features["y"], rows=100, is_sampled=True)}
        return replace(found, features=of_sample, rows=1000, sampled=100)

    few, other = sampled(no=100), sampled(no=50, yes=50)
    [one_sided] = find_label_faults({"train": other, "eval": few}, {}, "y", Limits())
    assert one_sided.what.startswith('all 100 labels looked at are "no"; ')
    assert one_sided.remedy.startswith("raise statistics.sample_rate; or ")
    [constant] = find_label_faults({"train": few}, {}, "y", Limits())
    assert constant.what == 'all 100 labels looked at are "no": there is nothing to learn'
    assert constant.remedy.endswith("raise statistics.sample_rate")
    [missing] = find_label_faults({"train": sampled(no=50, yes=49)}, {}, "y", Limits())
    assert missing.what == "1 of 100 rows looked at (1.00%) has no label"


def test_label_that_moved_is_reported_whole(split):
    assert faults(split, binary(0.35), before=binary(0.22)) == [
        Finding(
            "label",
            "y",
            ("train",),
            '"0" is 6,500 of 10,000 labels (65%), 78% in the reference, "1" rose from 22% to 35%',
            measured=0.13,
            limit=0.05,
            key="data_gate.max_label_shift",
            remedy="find out why the labels shifted; if correct, raise data_gate.max_label_shift above 0.130",
            query=RowQuery("y", within=(0.5, None)),
        )
    ]
    assert faults(split, binary(0.1), before=binary(0.22)) == [
        Finding(
            "label",
            "y",
            ("train",),
            '"1" is 1,000 of 10,000 labels (10%), 22% in the reference, "0" rose from 78% to 90%',
            measured=0.12,
            limit=0.05,
            key="data_gate.max_label_shift",
            remedy="find out why the labels shifted; if correct, raise data_gate.max_label_shift above 0.120",
            query=RowQuery("y", within=(None, 0.5)),
        )
    ]
    assert faults(split, {"a": 800, "b": 200}, before={"a": 500, "b": 500}) == [
        Finding(
            "label",
            "y",
            ("train",),
            '"a" is 800 of 1,000 labels (80%), 50% in the reference',
            measured=pytest.approx(0.3),
            limit=0.05,
            key="data_gate.max_label_shift",
            remedy="find out why the labels shifted; if correct, raise data_gate.max_label_shift above 0.300",
            query=RowQuery("y", values=("a",)),
        )
    ]
    even = np.linspace(0, 10, 10_001)
    assert faults(split, even + 3, before=even) == [
        Finding(
            "label",
            "y",
            ("train",),
            (
                "the mean is 8, 5 in the reference; about 1,100 of 10,001 values (11%) lie from 11 "
                "to 12.1, 0.00% in the reference: Jensen-Shannon 0.285"
            ),
            measured=pytest.approx(0.285170989),
            limit=0.05,
            key="data_gate.max_label_shift",
            remedy="find out why the labels shifted; if correct, raise data_gate.max_label_shift above 0.285",
            query=RowQuery("y", within=(pytest.approx(11.000001), pytest.approx(12.1000013))),
        )
    ]
    assert faults(split, binary(0.2), evaluate=binary(0.4)) == [
        Finding(
            "label",
            "y",
            ("eval",),
            '"0" is 6,000 of 10,000 labels (60%), 80% in train, "1" rose from 20% to 40%',
            measured=pytest.approx(0.2),
            limit=0.05,
            key="data_gate.max_label_shift",
            remedy="find out why the labels shifted; if correct, raise data_gate.max_label_shift above 0.200",
            query=RowQuery("y", within=(0.5, None)),
        )
    ]


def whole(feature, *counts):
    """The statistics of classes 1, 2 and so on, written as whole numbers."""
    values = np.repeat(np.arange(len(counts)) + 1, counts)
    found = {str(number + 1): float(count) for number, count in enumerate(counts)}
    return replace(feature("y", values), whole_counts=found)


def test_classes_that_are_whole_numbers_move_by_their_shares(split, feature):
    """As those of texts do: their divergence would be 0.02."""
    now, before = whole(feature, 4700, 2600, 2700), whole(feature, 3400, 3300, 3300)
    [finding] = faults(split, now, before=before)
    assert finding.what == '"1" is 4,700 of 10,000 labels (47%), 34% in the reference'
    assert (finding.measured, finding.query) == (pytest.approx(0.13), RowQuery("y", within=(0.5, 1.5)))
    [finding] = faults(split, before, evaluate=now)
    assert (finding.splits, finding.measured) == (("eval",), pytest.approx(0.13))
    assert faults(split, whole(feature, 3600, 3200, 3200), before=before) == []
    # More numbers than are counted, as of amounts.
    others = (replace(each, whole_counts={}) for each in (now, before))
    assert faults(split, next(others), before=next(others)) == []


def test_few_rows_without_a_label_name_a_limit_that_lets_them_pass(feature):
    statistics = {
        "train": SplitStatistics(1_000_000, {"y": feature("y", {"a": 500_000, "b": 499_997}, rows=1_000_000)})
    }
    [finding] = find_label_faults(statistics, {}, "y", Limits())
    assert finding.remedy.endswith("set data_gate.max_label_missing_share above 0.000003")
    assert not list(find_label_faults(statistics, {}, "y", Limits(max_label_missing_share=0.0000031)))
