"""What was measured of the served model, against its limits."""

import itertools

import pytest

from components.model_gate.check import conclude
from components.model_gate.serving_rules import ServingLimits, serving_checks

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


def test_sound_model_passes_with_the_defaults():
    assert reasons() == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"crash": "was killed by SIGABRT while answering real rows"}, "was killed by SIGABRT while"),
        ({"failed": [{"stage": "loading", "error": "OSError: no file"}]}, "cannot be loaded: OSError"),
        ({"failed": [{"stage": "real", "error": "InvalidArgumentError: x"}]}, "InvalidArgumentError: x"),
        ({"failed": [{"stage": "raw", "error": "InvalidArgumentError: x"}]}, "InvalidArgumentError: x"),
        ({"failed": [{"stage": "transform", "error": "KeyError: x"}]}, "KeyError: x"),
        ({"missing_signatures": ["serve_raw"]}, "lacks serve_raw"),
        ({"missing_signatures": ["serving_default"]}, "lacks serving_default"),
        ({"wrong_arguments": {"missing": ["fare"], "unexpected": []}}, "serve_raw does not take fare"),
        ({"wrong_arguments": {"missing": [], "unexpected": ["tips"]}}, "though no request carries it, tips"),
        ({"not_finite_rows": 3}, "3 of 256 answers are NaN or infinite"),
        ({"strange": ["fare = 1e+09"]}, "the answer is NaN or infinite for fare = 1e+09"),
        ({"strange": ["a", "b", "c", "d", "e"]}, "for a, b, c and 2 more"),
        ({"refused": [{"words": "company missing", "error": "E: y"}]}, "missing is refused with E: y"),
        ({"alone": {**APART, "largest": 0.2}}, "the transform or the model looks at the batch"),
        ({"raw": {**APART, "largest": 0.2}}, "a column is read differently"),
        ({"parity": {**APART, "largest": 0.2}}, "the transformed features agree, so it is the model"),
        ({"parity": {**APART, "largest": "inf"}}, "a number against none, or another shape"),
        (
            {"parity": {**APART, "largest": 0.2}, "features": {"fare_scaled": {**APART, "largest": 0.7}}},
            "the transform differs in fare_scaled by 0.7",
        ),
        ({"latency": {}}, "was not measured"),
        ({"memory_bytes": None}, "was not measured"),
    ],
)  # fmt: skip
def test_each_fault_is_refused_in_words(changes, words):
    found = reasons(**changes)
    assert any(words in reason for reason in found), found
    assert all(reason.startswith("serving: ") for reason in found)


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
    ("metric", "outputs", "fits"),
    [
        ("binary_accuracy", 1, True),
        ("binary_accuracy", 10, False),
        ("sparse_categorical_accuracy", 10, True),
        ("sparse_categorical_accuracy", 1, False),
        ("categorical_accuracy", 1, False),
        ("auc", 1, True),
        ("auc", 10, True),
    ],
)
def test_metric_must_fit_the_number_of_outputs(metric, outputs, fits):
    found = reasons(metrics=[metric], outputs=outputs)
    assert (found == []) is fits
    assert fits or found[0].startswith(f"metric {metric} {outputs} output")
