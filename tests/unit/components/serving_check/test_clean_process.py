"""What the clean process said, as a report."""

from components.serving_check.clean_process import report_of

EVENTS = [
    {"event": "imported", "import_s": 3.5, "tensorflow": "2.21.0"},
    {"event": "stage", "stage": "loading"},
    {"event": "loaded", "load_s": 0.4, "memory_before_bytes": 5},
    {"event": "stage", "stage": "answering perturbed rows"},
    {"event": "not_finite", "row": 4},
    {"event": "refused", "row": 7, "type": "InvalidArgumentError", "error": "x"},
    {"event": "latency", "rows": 128, "p99_ms": 3.0},
]


def test_findings_are_sorted_into_a_report():
    report = report_of(EVENTS, ending="")
    assert report["crash"] == ""
    assert (report["load_s"], report["tensorflow"], report["not_finite"]) == (0.4, "2.21.0", [4])
    assert report["refused"] == [{"row": 7, "type": "InvalidArgumentError", "error": "x"}]
    assert report["latency"] == {"128": {"p99_ms": 3.0}}


def test_crash_is_told_with_what_it_was_doing_and_keeps_what_was_found_before():
    report = report_of(EVENTS[:5], ending="was killed by SIGSEGV")
    assert report["crash"] == "was killed by SIGSEGV while answering perturbed rows"
    assert report["not_finite"] == [4]


def test_process_that_says_nothing_did_not_start():
    assert report_of([], ending="ended with exit code 1")["crash"] == "ended with exit code 1 while starting"
