"""How many rows there are."""

import pytest

from slipway.components.data_gate.finding import Finding, RowQuery
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.rows import (
    QuarantineSummary,
    find_bad_rows,
    find_conversion_notes,
    find_duplicates,
    find_row_counts,
)
from slipway.components.data_gate.statistics import SplitStatistics


def counts(split, **rows):
    return {name: split(count) for name, count in rows.items()}


@pytest.mark.parametrize(
    ("now", "before", "is_found"),
    [(100, 100, False), (149, 100, False), (150, 100, False), (151, 100, True), (50, 100, False),
     (49, 100, True), (200, 100, True), (100, 0, False)],
)  # fmt: skip
def test_change_of_the_row_count_is_held_against_the_reference(split, now, before, is_found):
    reference = counts(split, train=before) if before else {}
    findings = list(find_row_counts(counts(split, train=now), reference, Limits()))
    assert bool(findings) == is_found
    if is_found:
        assert findings[0].key == "data_gate.max_row_change"
        assert ("more" if now > before else "fewer") in findings[0].what


def test_rows_of_all_splits_count_together(split):
    reference = counts(split, train=50, eval=50)
    assert not list(find_row_counts(counts(split, train=100, eval=20), reference, Limits()))


@pytest.mark.parametrize(("rows", "is_found"), [(20, False), (19, True), (1, True)])
def test_too_few_rows_are_found_without_a_reference(split, rows, is_found):
    assert bool(list(find_row_counts(counts(split, train=rows), {}, Limits()))) == is_found


def test_split_without_rows_is_named(split):
    [finding] = find_row_counts(counts(split, train=100, eval=0), {}, Limits())
    assert finding.headline == "eval: no rows"


@pytest.mark.parametrize(
    ("rows", "what"), [(7, "none of its 7 rows was drawn for the statistics"), (0, "no rows")]
)
def test_split_of_which_the_sample_drew_no_row_is_distinguished_from_an_empty_one(rows, what):
    statistics = {"eval": SplitStatistics(rows, {}, sampled=0)}
    [finding] = find_row_counts(statistics, {}, Limits(min_rows=0))
    assert finding.what == what
    assert finding.remedy.startswith("raise statistics.sample_rate")


@pytest.mark.parametrize(("repeated", "is_found"), [(0, False), (10, False), (11, True), (50, True)])
def test_repeated_rows_are_held_against_their_limit(repeated, is_found):
    findings = list(find_duplicates(repeated, 100, Limits()))
    assert bool(findings) == is_found
    assert not list(find_duplicates(0, 0, Limits()))


@pytest.mark.parametrize(("rejected", "stops"), [(1, False), (2, True)])
def test_bad_rows_are_reported_and_stop_above_their_limit(rejected, stops):
    quarantine = QuarantineSummary(1000, {"not a number": rejected}, ("trips.csv line 7: not a number",))
    [finding] = find_bad_rows(quarantine, Limits(max_bad_share=0.001))
    assert finding.stops == stops
    assert "trips.csv line 7" in finding.what
    assert f"{rejected} not a number" in finding.what
    assert f") {'is' if rejected == 1 else 'are'} in quarantine" in finding.what


def test_without_bad_rows_there_is_nothing_to_tell():
    assert not list(find_bad_rows(QuarantineSummary(1000), Limits()))


def test_row_counts_are_reported_whole(split):
    assert list(find_row_counts(counts(split, train=100, eval=0), {}, Limits())) == [
        Finding("rows", "", ("eval",), "no rows", remedy="check data.source and data.split")
    ]
    assert list(find_row_counts(counts(split, train=1), {}, Limits(min_rows=2000))) == [
        Finding(
            "rows",
            "",
            (),
            "1 row in total, needs 2,000",
            measured=1,
            key="data_gate.min_rows",
            remedy="add rows, or lower data_gate.min_rows",
        )
    ]
    assert list(find_row_counts(counts(split, train=1600), counts(split, train=1000), Limits())) == [
        Finding(
            "rows",
            "",
            (),
            "1,600 rows, 60% more than the 1,000 of the reference",
            measured=0.6,
            limit=0.5,
            key="data_gate.max_row_change",
            remedy=(
                "check whether files are missing or duplicated; if it is right, raise "
                "data_gate.max_row_change above 0.60"
            ),
        )
    ]
    assert list(find_row_counts(counts(split, train=400), counts(split, train=1000), Limits())) == [
        Finding(
            "rows",
            "",
            (),
            "400 rows, 60% fewer than the 1,000 of the reference",
            measured=0.6,
            limit=0.5,
            key="data_gate.max_row_change",
            remedy=(
                "check whether files are missing or duplicated; if it is right, raise "
                "data_gate.max_row_change above 0.60"
            ),
        )
    ]


def test_repeated_rows_are_reported_whole():
    assert list(find_duplicates(11, 100, Limits(), examples=[{"a": 1.0, "b": "x"}])) == [
        Finding(
            "duplicates",
            "",
            (),
            "11 of 100 rows (11%) repeat an earlier row",
            measured=0.11,
            limit=0.1,
            key="data_gate.max_duplicate_share",
            remedy=(
                "check whether a file is there twice; if such rows are normal, raise "
                "data_gate.max_duplicate_share above 0.11"
            ),
            query=RowQuery("a", like=({"a": 1.0, "b": "x"},)),
        )
    ]
    assert list(find_duplicates(11, 100, Limits())) == [
        Finding(
            "duplicates",
            "",
            (),
            "11 of 100 rows (11%) repeat an earlier row",
            measured=0.11,
            limit=0.1,
            key="data_gate.max_duplicate_share",
            remedy=(
                "check whether a file is there twice; if such rows are normal, raise "
                "data_gate.max_duplicate_share above 0.11"
            ),
        )
    ]


def test_bad_rows_are_reported_whole():
    quarantine = QuarantineSummary(
        1000, {"not a number": 1, "too long": 2}, ("trips.csv line 7: a", "line 8: b")
    )
    assert list(find_bad_rows(quarantine, Limits(max_bad_share=0.001))) == [
        Finding(
            "bad rows",
            "",
            (),
            (
                "3 of 1,000 rows (0.30%) are in quarantine (1 not a number, 2 too long), first: "
                "trips.csv line 7: a; line 8: b"
            ),
            measured=0.003,
            limit=0.001,
            key="data_gate.max_bad_share",
            remedy="correct these rows, or raise data_gate.max_bad_share",
        )
    ]


def test_each_column_is_reported_once_and_stops_nothing():
    quarantine = QuarantineSummary(notes={"phone": "5 values with + in front", "x": "1 value read as 0"})
    assert list(find_conversion_notes(quarantine)) == [
        Finding(
            rule="read otherwise", feature="phone", splits=(), what="5 values with + in front", stops=False
        ),
        Finding(rule="read otherwise", feature="x", splits=(), what="1 value read as 0", stops=False),
    ]
