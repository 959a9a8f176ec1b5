"""Measurements of the served model, compared with their limits."""

import itertools

import pytest

from slipway.components.model_gate.serving_rules import ServingLimits, serving_checks
from slipway.components.model_gate.verdict import Check, conclude

APART = {"largest": 1e-7, "row": 0, "got": 0.5, "wanted": 0.5}
SOUND = {
    "crash": "",
    "failed": [],
    "refused": [],
    "strange": [],
    "missing_signatures": [],
    "wrong_arguments": {"missing": [], "unexpected": []},
    "rows": 256,
    "perturbed": 40,
    "not_finite_rows": 0,
    "outputs": 1,
    "features": {},
    "parity": APART,
    "alone": APART,
    "raw": APART,
    "latency": {
        "1": {"calls": 900, "p50_ms": 0.5, "p99_ms": 2.0, "rows_per_s": 1500.0},
        "128": {"calls": 400, "p50_ms": 1.0, "p99_ms": 4.0, "rows_per_s": 90000.0},
    },
    "load_s": 0.4,
    "size_bytes": 2**20,
    "memory_bytes": 600 * 2**20,
}


def reasons(limits=None, metrics=("auc",), **changes):
    checks = serving_checks({**SOUND, **changes}, limits or ServingLimits(), metrics=metrics)
    verdict = conclude(checks, metrics={}, baseline_metrics={"auc": 1})
    return [] if verdict.blessed else list(verdict.reasons)


ANSWERS, LOADS = "answers every row with a number", "loads and answers with TensorFlow alone"
APART_NOTES = {
    "answers as training does": "the transformed features agree, so the cause is the model: weights, or "
    "a step that training skips",
    "one row answered as in a batch": "the transform or the model depends on the batch",
    "serve_raw answers as serving_default": "a column is read differently",
}


def test_sound_model_passes_with_the_defaults():
    def said(name, required):
        return Check(f"serving: {name}", "", required, None, None, True, found="yes")

    def measured(name, got, required, unit="", note=""):
        return Check(f"serving: {name}", "", required, got, None, True, unit=unit, note=note)

    assert serving_checks(SOUND, ServingLimits(min_rows_per_s=80000)) == [
        said("loads and answers", LOADS),
        said("signatures", "has the promised signatures"),
        said("256 real rows", ANSWERS),
        said("40 strange rows", ANSWERS),
        *(measured(name, 1e-7, "at most 0.0001 apart", note=note) for name, note in APART_NOTES.items()),
        measured("p99 of 1 row", 2.0, "at most 500 ms", "ms"),
        measured("p99 of 128 rows", 4.0, "at most 2000 ms", "ms"),
        measured("load", 0.4, "at most 60 s", "s"),
        measured("size", 1.0, "at most 2048 MiB", "MiB"),
        measured("memory", 600.0, "at most 8192 MiB", "MiB"),
        measured("throughput", 90000.0, "at least 80000 rows/s", "rows/s"),
    ]
    assert reasons() == []


def failing(stage, error="E: x"):
    return {"failed": [{"stage": stage, "error": error}]}


def wrong(missing=(), unexpected=()):
    return {"wrong_arguments": {"missing": missing, "unexpected": unexpected}}


UNKNOWN = {**APART, "largest": "inf"}
FAR = {**APART, "largest": 0.2}
NEAR = {**APART, "largest": 1e-4}
NAN = "40 strange rows the answer is NaN or infinite for"
REFUSED = [{"words": "company missing", "error": "E: y"}, {"words": "b", "error": "E: z"}]
# What is needed -> what the report says, and what was found instead.
FAULTS = {
    LOADS: [
        ({"crash": "was killed by SIGABRT"}, "loads and answers was killed by SIGABRT"),
        (failing("loading", "OSError: x"), "loads and answers cannot be loaded: OSError: x"),
    ],
    "has the promised signatures": [
        ({"missing_signatures": ["serve_raw", "x"]}, "signatures lacks serve_raw, x"),
        ({"missing_signatures": ["serving_default"]}, "signatures lacks serving_default"),
        (wrong(missing=["fare", "tips"]), "signatures serve_raw does not take fare, tips"),
        (
            {"missing_signatures": ["x"], **wrong(unexpected=["tips"])},
            "signatures lacks x; serve_raw takes, but no request has, tips",
        ),
    ],
    ANSWERS: [
        (failing("real"), "256 real rows E: x"),
        ({"not_finite_rows": 3}, "256 real rows 3 of 256 answers are NaN or infinite"),
        ({"strange": ["fare = 1e+09"]}, f"{NAN} fare = 1e+09"),
        ({"strange": ["a", "b", "c"]}, f"{NAN} a, b, c"),
        ({"strange": ["a", "b", "c", "d"]}, f"{NAN} a, b, c and 1 more"),
        ({"refused": REFUSED}, "40 strange rows company missing, b is refused with E: y"),
        ({"strange": ["a"], "refused": REFUSED[:1]}, f"{NAN} a; company missing is refused with E: y"),
    ],
    "an answer": [
        (failing("alone"), "one row answered as in a batch E: x"),
        (failing("raw"), "serve_raw answers as serving_default E: x"),
        (failing("transform"), "transform_features E: x"),
    ],
    f"at most 0.0001 apart ({APART_NOTES['one row answered as in a batch']})": [
        ({"alone": FAR}, "one row answered as in a batch 0.2")
    ],
    f"at most 0.0001 apart ({APART_NOTES['serve_raw answers as serving_default']})": [
        ({"raw": FAR}, "serve_raw answers as serving_default 0.2"),
        ({"raw": FAR, "marked": []}, "serve_raw answers as serving_default 0.2"),
    ],
    f"at most 0.0001 apart ({APART_NOTES['answers as training does']})": [
        ({"parity": FAR}, "answers as training does 0.2"),
        ({"parity": UNKNOWN}, "answers as training does a number in only one of them, or different shapes"),
    ],
    "at most 8192 MiB": [({"memory_bytes": None}, "memory was not measured")],
}


@pytest.mark.parametrize(
    ("changes", "found", "needed"),
    [(changes, found, needed) for needed, faults in FAULTS.items() for changes, found in faults],
)
def test_each_fault_is_refused_in_words(changes, found, needed):
    assert reasons(**changes) == [f"serving: {found}, needs {needed}"]


def test_columns_whose_values_serve_raw_takes_for_empty_cells_are_named():
    [reason] = reasons(raw=FAR, marked=["company"])
    assert reason == (
        'serving: serve_raw answers as serving_default 0.2, needs at most 0.0001 apart (rows hold "", NaN or '
        "-9223372036854775808 as a value of company, which serve_raw takes for an empty cell: leave such "
        "cells empty in the data, or let preprocessing_fn fill empty cells with that value)"
    )
    assert not reasons(marked=["company"]), "the transform makes the same of both"


@pytest.mark.parametrize(
    ("features", "differs"),
    [
        ({"fare_scaled": {**APART, "largest": 0.7123}, "hour": NEAR}, "fare_scaled by 0.712"),
        (dict.fromkeys("abc", FAR), "a by 0.2, b by 0.2, c by 0.2"),
        (dict.fromkeys("abcd", FAR), "a by 0.2, b by 0.2, c by 0.2 and 1 more"),
    ],
)
def test_features_that_the_transform_makes_otherwise_are_named(features, differs):
    [reason] = reasons(parity=FAR, features=features)
    assert reason == (
        "serving: answers as training does 0.2, needs at most 0.0001 apart "
        f"(the transform differs in {differs})"
    )


def test_speed_that_was_not_measured_is_refused():
    assert reasons(ServingLimits(min_rows_per_s=1), latency={}) == [
        "serving: p99 of 1 row was not measured, needs at most 500 ms",
        "serving: p99 of 128 rows was not measured, needs at most 2000 ms",
        "serving: throughput was not measured, needs at least 1 rows/s",
    ]


BAD = {"not_finite_rows": 3, "missing_signatures": ["x"]}
LOADING = {"stage": "loading", "error": "E: x"}


@pytest.mark.parametrize(
    ("changes", "judged"),
    [
        ({}, {"signatures", "256 real rows"}),
        ({"failed": [LOADING]}, {"loads and answers"}),
        ({"crash": "was killed", "failed": [LOADING]}, {"loads and answers"}),
        ({"crash": "was killed"}, {"loads and answers", "signatures", "256 real rows"}),
        ({"missing_signatures": ["serving_default"]}, {"signatures"}),
    ],
)
def test_what_a_model_never_came_to_is_not_judged(changes, judged):
    checks = serving_checks({**SOUND, **BAD, **changes}, ServingLimits())
    assert {check.metric for check in checks if not check.passed} == {f"serving: {name}" for name in judged}


def test_model_that_died_before_its_first_answer_is_judged_by_that_alone():
    report = {name: value for name, value in SOUND.items() if name != "parity"}
    assert len(serving_checks({**report, "crash": "was killed"}, ServingLimits())) == 1
    assert not any("training" in check.metric for check in serving_checks(report, ServingLimits()))


LIMITED = [
    ("max_p99_ms", 2.0, 1), ("max_batch_p99_ms", 4.0, 1), ("max_load_s", 0.4, 1), ("max_size_mb", 1.0, 1),
    ("max_memory_mb", 600.0, 1), ("min_rows_per_s", 90000.0, -1), ("tolerance", 1e-7, 1),
]  # fmt: skip


@pytest.mark.parametrize(("limit", "factor"), [*itertools.product(LIMITED, [0.5, 0.99, 1.0, 1.01, 2.0])])
def test_measured_value_is_held_against_its_limit(limit, factor):
    name, measured, side = limit
    none = dict.fromkeys(ServingLimits.__dataclass_fields__)
    limits = ServingLimits(**{**none, "tolerance": 1.0, name: measured * factor})
    holds = factor >= 1 if side == 1 else factor <= 1
    assert (reasons(limits) == []) is holds


def test_slow_model_is_refused_with_its_time_and_the_limit():
    assert reasons(ServingLimits(max_p99_ms=1.0)) == ["serving: p99 of 1 row 2 ms, needs at most 1 ms"]


@pytest.mark.parametrize(
    ("metric", "outputs", "found"),
    [
        ("binary_accuracy", 1, None),
        ("binary_accuracy", 2, "2 outputs, needs one output"),
        ("binary_accuracy", 10, "10 outputs, needs one output"),
        ("sparse_categorical_accuracy", 2, None),
        ("sparse_categorical_accuracy", 10, None),
        ("sparse_categorical_accuracy", 1, "1 output, needs one output for each class"),
        ("auc", 1, None),
        ("auc", 10, None),
        ("pinball_loss", 1, None),
        ("pinball_loss", 3, None),
    ],
)
def test_metric_must_fit_the_number_of_outputs(metric, outputs, found):
    note = "this metric says nothing about such a model; choose another"
    told = [] if found is None else [f"metric {metric} {found} ({note})"]
    assert reasons(metrics=[metric], outputs=outputs) == told


def test_errors_of_a_vector_need_an_answer_for_each_of_its_numbers():
    def told(outputs):
        checks = serving_checks(
            {**SOUND, "outputs": outputs},
            ServingLimits(),
            metrics=["mean_squared_error"],
            entries={"mean_squared_error": 3},
        )
        return [check.reason for check in checks if not check.passed]

    assert told(3) == []
    for outputs in (1, 4):
        [reason] = told(outputs)
        assert "needs one output for each number of the label" in reason


def test_metric_of_an_output_must_fit_that_output():
    served = {"many": ["float32", [None, 10], "a:0"], "one": ["float32", [None, 1], "b:0"]}
    given = {"outputs": 11, "signatures": {"serving_default": {"outputs": served}}}
    assert (
        reasons(metrics=["one/auc", "one/binary_accuracy", "many/sparse_categorical_accuracy"], **given) == []
    )
    [told] = reasons(metrics=["many/mean_squared_error", "one/auc"], **given)
    assert told.startswith("metric many/mean_squared_error 10 outputs, needs one output")


@pytest.mark.parametrize(
    ("classes", "outputs", "told"),
    [
        (("no", "yes"), 1, None),
        (("no", "yes"), 2, None),
        (("a", "b", "c"), 3, None),
        (("a", "b", "c"), 4, "transform.classes 3 names, needs 4 names for 4 numbers per row"),
        (("a", "b", "c"), 1, "transform.classes 3 names, needs 2 names for 1 number per row"),
        (("a",), 1, "transform.classes 1 name, needs 2 names for 1 number per row"),
    ],
)
def test_names_that_answers_do_not_have_are_a_warning(classes, outputs, told):
    checks = serving_checks({**SOUND, "outputs": outputs}, ServingLimits(), classes={"": classes})
    verdict = conclude(checks, metrics={}, baseline_metrics={})
    assert verdict.blessed
    note = " (its predictions will have no names)"
    assert list(verdict.warnings) == ([] if told is None else [told + note])


def test_names_of_an_output_are_held_against_the_numbers_of_that_output():
    served = {"many": ["float32", [None, 3], "a:0"], "one": ["float32", [None, 1], "b:0"]}
    given = {**SOUND, "outputs": 4, "signatures": {"serving_default": {"outputs": served}}}
    named = {"many": ("a", "b", "c"), "one": ("no", "yes")}
    assert [each for each in serving_checks(given, ServingLimits(), classes=named) if not each.passed] == []
    named = {"many": ("a", "b"), "one": ("no", "yes")}
    [told] = [each for each in serving_checks(given, ServingLimits(), classes=named) if not each.passed]
    assert (told.metric, told.required) == ("transform.classes.many", "3 names for 3 numbers per row")


@pytest.mark.parametrize(
    ("shape", "fits"), [([None], True), ([None, None], True), ([None, 4, 1], True), ([None, 1, 4], False)]
)
def test_an_answer_has_as_many_numbers_as_the_last_dimension_of_its_shape(shape, fits):
    served = {"one": ["float32", shape, "a:0"], "two": ["float32", [None, 2], "b:0"]}
    given = {"outputs": 3, "signatures": {"serving_default": {"outputs": served}}}
    assert (reasons(metrics=["one/binary_accuracy"], **given) == []) is fits


def test_metric_of_an_output_that_is_not_served_is_held_against_all_numbers_of_a_row():
    served = {name: ["float32", [None, 1], f"{name}:0"] for name in ("music", "sport")}
    given = {"outputs": 2, "signatures": {"serving_default": {"outputs": served}}}
    [told] = reasons(metrics=["gone/binary_accuracy"], **given)
    assert told.startswith("metric gone/binary_accuracy 2 outputs, needs one output")


def test_mean_over_labels_must_fit_each_of_them():
    served = {name: ["float32", [None, 1], f"{name}:0"] for name in ("music", "sport")}
    given = {"outputs": 2, "signatures": {"serving_default": {"outputs": served}}}
    assert reasons(metrics=["auc", "binary_accuracy", "sport/binary_accuracy"], **given) == []
    [told] = reasons(metrics=["categorical_accuracy"], **given)
    assert told.startswith("metric categorical_accuracy 1 output, needs one output for each class")


def test_limits_of_a_pipeline_of_one_s_own_may_be_few_or_none():
    apart = {**SOUND, "parity": {"largest": 0.5, "row": 0, "got": 1.0, "wanted": 0.5}}
    for given in ({}, {"max_size_mb": 5.0}):
        limits = ServingLimits.of(given)
        assert (limits.tolerance, limits.max_load_s, limits.max_size_mb) == (
            1e-4,
            None,
            given.get("max_size_mb"),
        )
        failed = [check.metric for check in serving_checks(apart, limits) if not check.passed]
        assert failed == ["serving: answers as training does"]
