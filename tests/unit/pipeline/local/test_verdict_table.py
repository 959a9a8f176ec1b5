"""The model gate's verdict on the screen."""

from pipeline.local.verdict_table import verdict_lines

CHECK = {
    "metric": "auc",
    "slice": "overall",
    "required": "at least 0.94",
    "got": 0.71,
    "baseline": 0.95,
    "passed": False,
    "stops": True,
}


def test_verdict_shows_every_check_failed_ones_first_then_the_worst_slices():
    checks = [
        {**CHECK, "passed": True, "slice": "pay=Cash"},
        {**CHECK, "metric": "threshold auc.min", "stops": False},
        {**CHECK, "metric": "serving p99", "got": 12.5, "unit": "ms", "slice": "", "baseline": None},
    ]
    slices = {
        "overall": {"auc": 0.71},
        "pay=Cash": {"auc": 0.9, "example_count": 30.0},
        "pay=Dispute": {"auc": 0.5, "example_count": 3.0},
    }
    verdict = {"checks": checks, "slices": slices, "notes": ["1 slice is not judged"]}
    assert list(verdict_lines(verdict)) == [
        "check              slice     required       got         baseline  verdict",
        "serving p99                  at least 0.94  12.5000 ms            FAILED",
        "threshold auc.min  overall   at least 0.94  0.7100      0.9500    warning",
        "auc                pay=Cash  at least 0.94  0.7100      0.9500    passed",
        "note: 1 slice is not judged",
        "slice, by auc  examples  auc",
        "pay=Dispute    3         0.5000",
        "pay=Cash       30        0.9000",
    ]


def test_worst_slices_of_an_error_are_those_where_it_is_largest():
    check = {**CHECK, "metric": "mean_absolute_error", "required": "at most 2"}
    slices = {f"pay={value}": {"mean_absolute_error": value} for value in (0.5, 3.0, 1.0)}
    lines = list(verdict_lines({"checks": [check], "slices": {**slices, "pay=few": {}}}))
    assert [line.split()[0] for line in lines[-4:]] == ["pay=3.0", "pay=1.0", "pay=0.5", "pay=few"]


def test_reference_models_stand_beside_the_network():
    lines = list(verdict_lines({"reference_models": {"logistic": {"auc": 0.91}}}))
    assert lines == ["for comparison, logistic: auc 0.9100"]


def test_run_without_a_gate_has_no_verdict_to_show():
    assert list(verdict_lines({})) == []
