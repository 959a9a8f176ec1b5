"""The model gate's verdict on the screen."""

import pytest

from slipway.pipeline.screen.verdict_table import verdict_lines

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


def test_slices_that_are_too_small_to_be_judged_do_not_lead():
    slices = {
        "pay=Cash": {"auc": 0.9, "example_count": 100.0},
        "pay=Dispute": {"auc": 0.0, "example_count": 3.0},
        "pay=Card": {"auc": 0.8, "example_count": 2000.0},
    }
    lines = list(verdict_lines({"checks": [CHECK], "slices": slices, "min_slice_rows": 100}))
    assert lines[-4:] == [
        "pay=Card       2000      0.8000",
        "pay=Cash       100       0.9000",
        "pay=Dispute    3 (few)   0",
        "few: under 100 rows (evaluate.min_slice_rows): not judged, listed last",
    ]


LONG = {
    **CHECK,
    "metric": "serving_load",
    "slice": "company=" + "Taxi Affiliation Services [bold] " * 3,
    "got": None,
    "found": f"no op {'Custom' * 20} in it; raise evaluate.serving.limit_s or leave the op out",
    "baseline": -12345.6789,
}


@pytest.mark.parametrize("width", [80, 120, 200])
def test_long_values_go_on_in_the_next_line_and_nothing_is_lost(width):
    lines = list(verdict_lines({"checks": [CHECK, LONG]}, width=width))
    assert max(map(len, lines)) <= width
    # The columns, each put together again from its lines.
    starts = [lines[0].index(name) for name in ("check", "slice", "required", "got", "baseline", "verdict")]
    ends = [*starts[1:], None]
    columns = [
        "".join(line[start:end] for line in lines).replace(" ", "")
        for start, end in zip(starts, ends, strict=True)
    ]
    for column, name in zip(columns, ("metric", "slice", "required", "found"), strict=False):
        assert LONG[name].replace(" ", "") in column
    assert sum("-12345.6789" in line and "FAILED" in line for line in lines) == 1


def test_one_long_value_leaves_the_lines_of_the_others_as_they_are():
    lines = list(verdict_lines({"checks": [CHECK, LONG]}, width=100))
    assert lines[1].split("  ")[0] == "auc"
    assert lines[1].endswith("0.9500       FAILED")


def test_a_screen_too_narrow_for_columns_gets_them_one_below_another():
    lines = list(verdict_lines({"checks": [CHECK]}, width=40))
    assert lines == [
        "check: auc",
        "  slice: overall",
        "  required: at least 0.94",
        "  got: 0.7100",
        "  baseline: 0.9500",
        "  verdict: FAILED",
    ]


def test_a_log_has_a_line_for_each_check_however_long():
    lines = list(verdict_lines({"checks": [CHECK, LONG]}))
    assert len(lines) == 3
    assert LONG["found"] in lines[2]


def test_a_name_with_a_line_break_stays_on_its_line():
    lines = list(verdict_lines({"checks": [{**CHECK, "slice": "pay=\x1b[31m\nCash"}]}))
    assert len(lines) == 2
    assert r"pay=\x1b[31m\nCash" in lines[1]


def test_reference_models_stand_beside_the_network():
    lines = list(verdict_lines({"reference_models": {"logistic": {"auc": 0.91}}}))
    assert lines == ["for comparison, logistic: auc 0.9100"]


def test_run_without_a_gate_has_no_verdict_to_show():
    assert list(verdict_lines({})) == []
