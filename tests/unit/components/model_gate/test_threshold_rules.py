"""The thresholds of the model gate."""

import itertools
import json
import math
from dataclasses import replace

import pytest

from slipway.components.model_gate.interval_formulas import Spread
from slipway.components.model_gate.measured import Measured, told
from slipway.components.model_gate.threshold_rules import Threshold, threshold_checks
from slipway.components.model_gate.trivial_scores import LabelStatistics
from slipway.components.model_gate.verdict import Check, conclude

LABELS = LabelStatistics.of_counts({0: 800, 1: 200})


def measured(got, baseline=None, labels=LABELS):
    return Measured({"example_count": labels.rows, **got}, baseline or {}, labels)


def judge(limits, got, baseline=None, **slices):
    """The verdict of overall limits; `slices` are more slices by name."""
    found = {"overall": measured(got, baseline), **slices}
    checks, notes = threshold_checks({"overall": limits}, found, min_slice_rows=100)
    return conclude(checks, metrics=got, baseline_metrics=baseline or {}, notes=notes)


VALUES = [-1.0, 0.0, 0.2, 0.5, 0.94, 1.0, 7.5]


@pytest.mark.parametrize(("limit", "value"), [*itertools.product(VALUES, VALUES)])
def test_value_is_held_against_min_and_max(limit, value):
    assert judge({"m": Threshold(min=limit)}, {"m": value}).blessed is (value >= limit)
    assert judge({"m": Threshold(max=limit)}, {"m": value}).blessed is (value <= limit)


@pytest.mark.parametrize(
    "limits", [Threshold(min=0.0), Threshold(max=1.0), Threshold(max_drop=9.0), Threshold(max_rise=9.0)]
)
@pytest.mark.parametrize("confidence", [None, 0.95])
@pytest.mark.parametrize("value", [math.nan, None])
def test_what_is_no_number_never_passes(limits, confidence, value):
    sure = Threshold(**{**vars(limits), "confidence": confidence})
    got = {} if value is None else {"auc": value}
    assert not judge({"auc": sure}, got, {"auc": 0.5}).blessed


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinity_is_outside_the_bound_it_exceeds(value):
    assert judge({"m": Threshold(min=0.0)}, {"m": value}).blessed is (value > 0)
    assert judge({"m": Threshold(max=0.0)}, {"m": value}).blessed is (value < 0)


@pytest.mark.parametrize(
    ("baseline", "change"), [*itertools.product([0.2, 0.5, 0.9], [-0.2, -0.06, -0.04, 0.0, 0.04, 0.06])]
)
def test_candidate_may_drop_or_rise_so_far_against_the_baseline(baseline, change):
    value = baseline + change
    assert judge({"m": Threshold(max_drop=0.05)}, {"m": value}, {"m": baseline}).blessed is (change > -0.05)
    assert judge({"m": Threshold(max_rise=0.05)}, {"m": value}, {"m": baseline}).blessed is (change < 0.05)


def test_change_as_large_as_allowed_is_allowed():
    assert judge({"m": Threshold(max_drop=0.25)}, {"m": 0.5}, {"m": 0.75}).blessed
    assert judge({"m": Threshold(max_rise=0.25)}, {"m": 0.75}, {"m": 0.5}).blessed
    assert judge({"m": Threshold(max_rise=0.25, confidence=0.95)}, {"m": 0.75}, {"m": 0.5}).blessed


def test_evaluation_without_the_overall_slice_passes_nothing():
    limits = Threshold(min=0.5, max=0.9, max_drop=0.1)
    checks, _ = threshold_checks({"overall": {"auc": limits}}, {}, min_slice_rows=1)
    assert [check.passed for check in checks] == [False, False, False]


def test_first_model_says_that_there_was_nothing_to_compare_with():
    found = judge({"m": Threshold(max_drop=0.0)}, {"m": 0.1})
    assert found.blessed
    assert found.reasons[-1] == "no earlier blessed model to compare with"


def test_metric_limited_by_its_drop_alone_must_be_there_too():
    assert not judge({"m": Threshold(max_drop=0.1)}, {}).blessed


def test_baseline_that_lacks_the_metric_cannot_pass_the_candidate():
    [reason] = judge({"m": Threshold(max_drop=0.01)}, {"m": 0.99}, {"other": 0.9}).reasons
    assert reason == "m 0.99, needs at most 0.01 below the baseline, whose value is unknown"
    [reason] = judge({"m": Threshold(max_rise=0.01)}, {"m": 0.99}, {"other": 0.9}).reasons
    assert reason == "m 0.99, needs at most 0.01 above the baseline, whose value is unknown"


def test_refusal_names_metric_value_and_requirement():
    assert judge({"auc": Threshold(min=0.94)}, {"auc": 0.71}).reasons == ("auc 0.71, needs at least 0.94",)


@pytest.mark.parametrize(
    ("got", "shown"), [(0.93996, "0.93996"), (0.93999996, "0.93999996"), (0.9394, "0.9394"), (0.71, "0.71")]
)
def test_value_that_just_fails_is_not_shown_as_the_limit(got, shown):
    found = judge({"auc": Threshold(min=0.94)}, {"auc": got})
    assert found.reasons == (f"auc {shown}, needs at least 0.94",)


@pytest.mark.parametrize(
    ("limits", "got", "baseline", "blessed"),
    [
        (Threshold(max_drop=0.1), 0.7, 0.8, True),
        (Threshold(max_drop=0.1), 0.6999999, 0.8, False),
        (Threshold(max_rise=0.1), 0.8, 0.7, True),
        (Threshold(max_rise=0.1), 0.8000001, 0.7, False),
    ],
)
def test_change_of_just_what_is_allowed_passes(limits, got, baseline, blessed):
    assert judge({"m": limits}, {"m": got}, {"m": baseline}).blessed == blessed


def test_refusal_against_the_baseline_shows_the_baseline():
    [reason] = judge({"auc": Threshold(max_drop=0.01)}, {"auc": 0.95}, {"auc": 0.98}).reasons
    assert reason == "auc 0.95, needs at least 0.97 (baseline 0.98 less 0.01)"
    [reason] = judge({"mae": Threshold(max_rise=0.5)}, {"mae": 3.0}, {"mae": 2.0}).reasons
    assert reason == "mae 3, needs at most 2.5 (baseline 2 plus 0.5)"


def test_every_failed_check_is_reported():
    limits = {"auc": Threshold(min=0.9), "loss": Threshold(max=0.3)}
    assert len(judge(limits, {"auc": 0.8, "loss": 0.4}).reasons) == 2


@pytest.mark.parametrize(
    ("metric", "value", "floor", "blessed"),
    [
        # 1,000 rows: Wilson's lower bound of 0.9 is 0.883; of 200 and 800 rows, the area's of 0.9 is 0.875.
        ("binary_accuracy", 0.9, 0.88, True),
        ("binary_accuracy", 0.9, 0.89, False),
        ("auc", 0.9, 0.87, True),
        ("auc", 0.9, 0.88, False),
    ],
)
def test_with_confidence_the_bound_must_meet_the_threshold(metric, value, floor, blessed):
    found = judge({metric: Threshold(min=floor, confidence=0.95)}, {metric: value})
    assert found.blessed is blessed
    assert blessed or "lower bound 0.8" in found.reasons[0]


@pytest.mark.parametrize(("drop", "blessed"), [(0.01, True), (0.03, True), (0.05, False), (0.2, False)])
def test_with_confidence_a_drop_counts_as_far_as_chance_does_not_explain_it(drop, blessed):
    limits = {"binary_accuracy": Threshold(max_drop=0.01, confidence=0.95)}
    found = judge(limits, {"binary_accuracy": 0.9 - drop}, {"binary_accuracy": 0.9})
    assert found.blessed is blessed


@pytest.mark.parametrize(
    ("limits", "got", "required", "passed", "note"),
    [
        (Threshold(min=0.875), 0.9, "at least 0.875", True, ""),
        (Threshold(max=0.875), 0.9, "at most 0.875", False, ""),
        (
            Threshold(min=0.875, confidence=0.9),
            0.9,
            "at least 0.875 with 90 % confidence",
            True,
            "lower bound 0.8872",
        ),
        (
            Threshold(max=0.95, confidence=0.9),
            0.9,
            "at most 0.95 with 90 % confidence",
            True,
            "upper bound 0.9115",
        ),
        (Threshold(min=0.5, confidence=0.9), None, "at least 0.5 with 90 % confidence", False, ""),
        (Threshold(max=0.5, confidence=0.9), None, "at most 0.5 with 90 % confidence", False, ""),
        (Threshold(max_drop=0.25), 0.9, "at least 0.5 (baseline 0.75 less 0.25)", True, ""),
        (Threshold(max_rise=0.25), 1.0, "at most 1 (baseline 0.75 plus 0.25)", True, ""),
        (Threshold(max_drop=0.25), None, "at least 0.5 (baseline 0.75 less 0.25)", False, ""),
        (
            Threshold(max_drop=0.25, confidence=0.9),
            0.4,
            "at least 0.5 (baseline 0.75 less 0.25), allowing for chance, 90 %",
            False,
            "beyond chance: worse by at least 0.3231",
        ),
    ],
)
def test_check_has_all_that_was_compared(limits, got, required, passed, note):
    metrics = {} if got is None else {"binary_accuracy": got}
    slices = {"overall": measured(metrics, {"binary_accuracy": 0.75})}
    checks, _ = threshold_checks({"overall": {"binary_accuracy": limits}}, slices, min_slice_rows=1)
    assert checks == [Check("binary_accuracy", "overall", required, got, 0.75, passed, note=note)]


def test_rise_that_chance_cannot_explain_is_reported_whole_where_no_formula_is_known():
    limits = {"mean_absolute_error": Threshold(max_rise=0.25, confidence=0.95)}
    [reason] = judge(limits, {"mean_absolute_error": 1.0}, {"mean_absolute_error": 0.5}).reasons
    assert reason == (
        "mean_absolute_error 1, needs at most 0.75 (baseline 0.5 plus 0.25), allowing for chance, 95 % "
        "(beyond chance: worse by at least 0.5)"
    )


SPREAD = Spread(0.1, 63)  # 1.669 of it either side, with 95 % confidence


@pytest.mark.parametrize(("most", "blessed"), [(1.0, False), (1.1, True)])
def test_metric_without_a_formula_is_held_to_the_bound_of_its_spread(most, blessed):
    at = Measured({"example_count": 1000, "hinge": 0.9}, {}, LABELS, spreads={"hinge": SPREAD})
    limits = Threshold(max=most, confidence=0.95)
    [check], notes = threshold_checks({"overall": {"hinge": limits}}, {"overall": at}, min_slice_rows=1)
    assert (check.passed, check.note, notes) == (blessed, "upper bound 1.067", [])


@pytest.mark.parametrize(
    ("metric", "limits", "got", "baseline", "note"),
    [
        ("hinge", Threshold(max_rise=0.25, confidence=0.95), 1.0, 0.5, "worse by at least 0.3331"),
        # On the same rows chance explains less of a difference than the formula for different rows allows.
        ("binary_accuracy", Threshold(max_drop=0.01, confidence=0.95), 0.7, 0.9, "worse by at least 0.03306"),
    ],
)
def test_difference_is_judged_by_its_own_spread(metric, limits, got, baseline, note):
    at = Measured(
        {"example_count": 1000, metric: got}, {metric: baseline}, LABELS, difference_spreads={metric: SPREAD}
    )
    [check], _ = threshold_checks({"overall": {metric: limits}}, {"overall": at}, min_slice_rows=1)
    assert not check.passed
    assert check.note == f"beyond chance: {note}"
    sure = Measured(at.metrics, at.baseline, LABELS, difference_spreads={metric: Spread(0.2, 63)})
    [check], _ = threshold_checks({"overall": {metric: limits}}, {"overall": sure}, min_slice_rows=1)
    assert check.passed


@pytest.mark.parametrize(("freedom", "worse_by"), [(29, 0.165), (30, 0.1916)])
def test_of_few_rows_a_difference_is_no_surer_than_that_of_models_on_different_rows(freedom, worse_by):
    slices = {
        "overall": Measured(
            {"example_count": 100, "accuracy": 0.7},
            {"accuracy": 0.95},
            LABELS,
            difference_spreads={"accuracy": Spread(0.0344, freedom)},
        )
    }
    limits = {"accuracy": Threshold(max_drop=0.01, confidence=0.95)}
    [check], _ = threshold_checks({"overall": limits}, slices, min_slice_rows=1)
    assert check.note == f"beyond chance: worse by at least {worse_by}"


def test_drop_whose_own_spread_is_not_there_is_judged_by_that_of_the_value():
    limits = {"precision": Threshold(max_drop=0.1, confidence=0.95)}
    at = measured({"precision": 0.5}, {"precision": 0.9})
    [check], [note] = threshold_checks({"overall": limits}, {"overall": at}, min_slice_rows=1)
    assert check.note == "beyond chance: worse by at least 0.4"
    assert note.startswith("precision is judged without the confidence asked for on overall")
    of_value = Measured(at.metrics, at.baseline, LABELS, spreads={"precision": SPREAD})
    [check], notes = threshold_checks({"overall": limits}, {"overall": of_value}, min_slice_rows=1)
    # 0.1669 on either side: by the root of twice its square less than 0.4.
    assert (check.note, notes) == ("beyond chance: worse by at least 0.1639", [])
    of_both = Measured(at.metrics, at.baseline, LABELS, difference_spreads={"precision": SPREAD})
    assert threshold_checks({"overall": limits}, {"overall": of_both}, min_slice_rows=1)[1] == []
    limits = {"precision": Threshold(min=0.4, max_drop=0.1, confidence=0.95)}
    assert len(threshold_checks({"overall": limits}, {"overall": of_both}, min_slice_rows=1)[1]) == 1


def test_confidence_that_nothing_is_known_of_is_noted():
    slices = {name: measured({"hinge": 0.5, "auc": 0.9}) for name in ("overall", "pay=Cash", "pay=Card")}
    limits = {"hinge": Threshold(max=1, confidence=0.9), "auc": Threshold(min=0.5, confidence=0.9)}
    _, notes = threshold_checks({"overall": limits}, slices, min_slice_rows=1)
    words = "the confidence asked for on overall: the evaluation has no bounds for it there"
    assert notes == [f"hinge is judged without {words}"]
    _, notes = threshold_checks({"overall": limits, "pay": limits}, slices, min_slice_rows=1)
    assert notes[0].startswith("hinge is judged without the confidence asked for on overall and 2 more: ")
    two = {name: slices[name] for name in ("overall", "pay=Cash")}
    _, notes = threshold_checks({"overall": limits, "pay": limits}, two, min_slice_rows=1)
    assert notes[0].startswith("hinge is judged without the confidence asked for on overall and 1 more: ")
    missing = {"overall": measured({}), "pay=Cash": measured({"hinge": math.nan})}
    assert threshold_checks({"overall": limits, "pay": limits}, missing, min_slice_rows=1)[1] == []


@pytest.mark.parametrize(
    ("limits", "baseline", "is_noted"),
    [
        (Threshold(max_rise=0.1, confidence=0.9), {"hinge": 0.5}, True),
        (Threshold(max_drop=0.1, confidence=0.9), {"hinge": 0.5}, True),
        (Threshold(max_rise=0.1, confidence=0.9), {}, False),
        (Threshold(max_rise=0.1), {"hinge": 0.5}, False),
    ],
)
def test_confidence_in_a_difference_is_noted_only_where_there_is_something_to_compare(
    limits, baseline, is_noted
):
    _, notes = threshold_checks(
        {"overall": {"hinge": limits}}, {"overall": measured({"hinge": 0.5}, baseline)}, min_slice_rows=1
    )
    assert any("without the confidence asked for" in note for note in notes) is is_noted


SLICES = {
    "overall": measured({"auc": 0.95}, {"auc": 0.95}),
    "pay=Cash": measured({"auc": 0.70}, {"auc": 0.93}),
    "pay=Card": measured({"auc": 0.94}, {"auc": 0.93}),
    "hour=3": measured({"auc": 0.10}, {"auc": 0.9}, LabelStatistics.of_counts({0: 50, 1: 49})),
}


@pytest.mark.parametrize(
    ("key", "limits", "failed"),
    [
        ("all", Threshold(min=0.5), []),
        ("all", Threshold(min=0.8), ["pay=Cash"]),
        ("all", Threshold(max_drop=0.05), ["pay=Cash"]),
        ("pay", Threshold(min=0.99), ["pay=Card", "pay=Cash"]),
        ("pay=Card", Threshold(min=0.99), ["pay=Card"]),
        ("hour", Threshold(min=0.99), []),
        ("overall", Threshold(min=0.99), ["overall"]),
    ],
)
def test_limits_hold_for_the_slices_they_name(key, limits, failed):
    checks, _ = threshold_checks({key: {"auc": limits}}, SLICES, min_slice_rows=100)
    assert [check.slice for check in checks if not check.passed] == failed


def test_value_that_looks_like_another_column_does_not_hide_a_slice_from_its_limits():
    odd = replace(measured({"auc": 0.2}), columns="pay")
    slices = {"overall": SLICES["overall"], "pay=Cash, tip=0": odd}
    [check], notes = threshold_checks({"pay": {"auc": Threshold(min=0.5)}}, slices, min_slice_rows=100)
    assert (check.slice, check.passed, notes) == ("pay=Cash, tip=0", False, [])


def test_limits_of_a_cross_of_columns_hold_for_its_slices_alone():
    bad = measured({"auc": 0.2})
    slices = {"overall": SLICES["overall"], "hour=3, pay=Cash": bad, 'pay="Cash, hour=3"': bad}
    for key in ("hour, pay", "hour=3, pay=Cash"):
        [check], notes = threshold_checks({key: {"auc": Threshold(min=0.5)}}, slices, min_slice_rows=100)
        assert (check.slice, check.passed, notes) == ("hour=3, pay=Cash", False, [])
    [check], _ = threshold_checks({"pay": {"auc": Threshold(min=0.5)}}, slices, min_slice_rows=100)
    assert check.slice == 'pay="Cash, hour=3"'


def test_slice_with_few_rows_is_not_judged_and_that_is_reported():
    _, notes = threshold_checks({"all": {"auc": Threshold(min=0.5)}}, SLICES, min_slice_rows=100)
    assert notes == ["1 slice is not judged: fewer than 100 rows (evaluate.min_slice_rows)"]
    checks, _ = threshold_checks({"all": {"auc": Threshold(min=0.5)}}, SLICES, min_slice_rows=99)
    assert [check.slice for check in checks if not check.passed] == ["hour=3"]
    _, notes = threshold_checks({"all": {"auc": Threshold(min=0.5)}}, SLICES, min_slice_rows=1001)
    assert notes == ["3 slices are not judged: fewer than 1001 rows (evaluate.min_slice_rows)"]


def test_model_worse_on_one_slice_only_is_refused_with_that_slice():
    checks, _ = threshold_checks({"all": {"auc": Threshold(max_drop=0.05)}}, SLICES, min_slice_rows=100)
    [reason] = conclude(checks, metrics={}, baseline_metrics={"auc": 1}).reasons
    assert reason == "auc 0.7 on pay=Cash, needs at least 0.88 (baseline 0.93 less 0.05)"


def test_slice_that_the_baseline_did_not_have_is_not_compared():
    slices = {"overall": SLICES["overall"], "pay=New": measured({"auc": 0.2})}
    assert threshold_checks({"all": {"auc": Threshold(max_drop=0.0)}}, slices, min_slice_rows=1)[0] == []


@pytest.mark.parametrize("metric", ["ndcg", "mean_reciprocal_rank"])
def test_ranks_are_not_judged_where_no_row_is_relevant(metric):
    limits = {"all": {metric: Threshold(min=0.5)}}
    nothing, all_equal = (
        threshold_checks(limits, {"a=1": measured({}, labels=labels)}, min_slice_rows=1)
        for labels in (LabelStatistics.of_counts({0: 500}), LabelStatistics.of_counts({2: 500}))
    )
    assert nothing == ([], [f"{metric} is not judged on a=1: all its labels are equal"])
    assert [check.passed for check in all_equal[0]] == [False], "any order of these is the best"


def test_mean_is_not_judged_where_no_label_has_a_value_of_it():
    one, limits = LabelStatistics.of_counts({0: 500}), {"all": {"auc": Threshold(min=0.5)}}
    for outputs, notes in (
        ({"sport": one, "music": one}, ["auc is not judged on a=1: all its labels are equal"]),
        ({"sport": one, "music": LABELS}, []),
    ):
        at = Measured({"example_count": 500.0}, {}, None, labels_of_outputs=outputs)
        assert threshold_checks(limits, {"a=1": at}, min_slice_rows=1)[1] == notes


@pytest.mark.parametrize("metric", ["auc", "precision", "recall", "f1_score"])
def test_what_tells_classes_apart_is_not_judged_where_all_labels_are_equal(metric):
    one = measured({}, labels=LabelStatistics.of_counts({0: 500}))
    limits = {metric: Threshold(min=0.5)}
    checks, notes = threshold_checks({"all": limits}, {"pay=No": one}, min_slice_rows=1)
    assert checks == []
    assert notes == [f"{metric} is not judged on pay=No: all its labels are equal"]


def test_area_over_labels_of_one_class_is_not_told():
    one = measured({"auc": 0.0, "binary_accuracy": 0.9}, labels=LabelStatistics.of_counts({0: 500}))
    both = measured({"auc": 0.0})

    assert one.defined == {"example_count": 500, "binary_accuracy": 0.9}
    assert both.defined == {"example_count": 1000, "auc": 0.0}


def test_slice_with_limits_and_without_a_row_is_a_warning():
    keys = ["overall", "all", "pay", "pay=Cash", "pay=Gold"]
    limits = {key: {"auc": Threshold(min=0.5)} for key in keys}
    checks, notes = threshold_checks(limits, {"pay=Cash": SLICES["pay=Cash"]}, min_slice_rows=1)
    found = conclude(checks[1:], metrics={}, baseline_metrics={}, notes=notes)
    assert found.warnings == (
        "slice pay=Gold has no row in the eval split, needs one, or its limits judge nothing (check its "
        "name, and the data; or take it out of evaluate.slice_thresholds)",
    )
    assert notes == []


def test_verdict_is_plain_json():
    document = json.loads(
        json.dumps(judge({"auc": Threshold(min=0.9)}, {"auc": 0.95}, {"auc": 0.94}).to_json())
    )
    assert document["metrics"] == {"auc": 0.95}
    assert document["checks"][0]["required"] == "at least 0.9"
    assert {"blessed", "reasons", "warnings", "notes", "overrides", "baseline_metrics"} <= document.keys()


def test_metric_of_an_output_is_judged_with_the_labels_of_that_output():
    # Of the output `many`, all labels are equal: its area means nothing there.
    outputs = {"tip": LABELS, "many": LabelStatistics.of_counts({1: 1000})}
    metrics = {"tip/auc": 0.8, "many/auc": 0.5, "tip/binary_accuracy": 0.9, "example_count": 1000.0}
    at = Measured(metrics, {}, None, labels_of_outputs=outputs)
    limits = {"tip/auc": Threshold(min=0.7, confidence=0.95), "many/auc": Threshold(min=0.7)}
    checks, notes = threshold_checks(
        {"overall": limits, "all": limits}, {"overall": at, "a=1": at}, min_slice_rows=1
    )
    assert [(check.metric, check.slice, check.passed) for check in checks] == [
        ("tip/auc", "overall", True), ("many/auc", "overall", False), ("tip/auc", "a=1", True)
    ]  # fmt: skip
    assert notes == ["many/auc is not judged on a=1: all its labels are equal"]
    assert at.defined.keys() == metrics.keys() - {"many/auc"}
    alone = Measured({"auc": 0.8, "example_count": 1000.0}, {}, LABELS)
    found, _ = threshold_checks({"overall": {"auc": limits["tip/auc"]}}, {"overall": alone}, min_slice_rows=1)
    assert checks[0].note == found[0].note, "the bound is that of a model with this output alone"


def test_slice_without_a_row_that_counts_is_not_judged():
    known = LabelStatistics.of_counts({0: 500, 1: 500})
    limits = {
        "all": {"auc": Threshold(min=0.5), "mean_squared_error": Threshold(max=1), "rows": Threshold(min=1)}
    }
    overall = Measured({"example_count": 1000, "auc": 0.9}, {}, known)
    # Of rows that all weigh nothing the Evaluator has an area of 0, and no error.
    weightless = Measured({"example_count": 200, "auc": 0.0, "rows": 0.0}, {}, None)
    checks, notes = threshold_checks(limits, {"overall": overall, "day=1": weightless}, min_slice_rows=100)
    assert [(each.metric, each.passed) for each in checks] == [("rows", False)], "one's own may count rows"
    why = "is not judged on day=1: no row there has a label and a weight above 0"
    assert notes == [f"auc {why}", f"mean_squared_error {why}"]
    unknown = {"overall": replace(overall, labels=None), "day=1": weightless}
    checks, _ = threshold_checks(limits, unknown, min_slice_rows=100)
    assert [each.passed for each in checks] == [False] * 3, "where no labels are known, nothing excuses it"


def test_mean_over_outputs_is_not_judged_where_no_row_counts():
    labels = {"tip": LabelStatistics.of_counts({0: 500, 1: 500})}
    limits = {"all": {"auc": Threshold(min=0.5), "tip/auc": Threshold(min=0.5)}}
    overall = Measured({"example_count": 1000, "auc": 0.9}, {}, None, labels_of_outputs=labels)
    slices = {"overall": overall, "day=1": Measured({"example_count": 200, "tip/auc": 0.0}, {}, None)}
    checks, notes = threshold_checks(limits, slices, min_slice_rows=100)
    assert (checks, len(notes)) == ([], 2)


def test_percentage_error_is_not_judged_where_all_labels_are_zero():
    limits = {"all": {"mean_absolute_percentage_error": Threshold(max=5)}}
    for label, judged in ((0, False), (3, True)):
        at = Measured({"example_count": 200}, {}, LabelStatistics.of_counts({label: 200}))
        checks, _ = threshold_checks(limits, {"overall": at, "day=1": at}, min_slice_rows=100)
        assert bool(checks) is judged


def test_area_of_a_slice_in_which_no_row_counts_is_not_told():
    overall = measured({"auc": 0.9})
    weightless = Measured({"example_count": 40.0, "auc": 0.0, "gain": 2.0}, {}, None)
    assert told(weightless, overall=overall) == {"example_count": 40.0, "gain": 2.0}
    assert told(weightless, overall=Measured({}, {}, None)) == weightless.metrics, (
        "labels are not known at all"
    )
    assert told(overall, overall=overall) == overall.metrics


@pytest.mark.parametrize("confidence", [None, 0.95])
def test_finite_error_is_no_rise_above_a_baseline_s_infinite_one(confidence):
    name = "mean_squared_logarithmic_error"
    limits = {name: Threshold(max_rise=0.1, confidence=confidence)}
    assert judge(limits, {name: 0.3}, {name: math.inf}).blessed
    assert not judge(limits, {name: math.inf}, {name: 0.3}).blessed
