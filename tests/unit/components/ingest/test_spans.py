"""Spans of a data source."""

import pytest

from slipway.components.ingest.spans import at_span, span_kind, span_number, span_of


@pytest.mark.parametrize(
    ("patterns", "kind"),
    [
        (["data/{SPAN}/*.csv"], "number"),
        (["data/{SPAN:3}-{VERSION}.csv"], "number"),
        (["gs://b/d", "{YYYY}-{MM}-{DD}/*.csv"], "date"),
        (["{YYYY}/{MM}/*.csv"], None),
        (["data/*.csv"], None),
        ([], None),
    ],
)
def test_source_names_its_spans_by_number_or_by_day(patterns, kind):
    assert span_kind(patterns) == kind


def test_days_are_counted_as_tfx_counts_them():
    assert [span_number(span) for span in ("1970-01-01", "1970-02-01", "2027-01-31", 7)] == [0, 31, 20849, 7]


@pytest.mark.parametrize("span", ["1969-12-31", "2027-02-30", "soon", -1])
def test_what_is_no_span_is_refused(span):
    with pytest.raises(ValueError, match=r".+"):
        span_number(span)


@pytest.mark.parametrize(
    ("pattern", "filled"),
    [
        ("span-{SPAN}/*.csv", "span-20778/*.csv"),
        ("span-{SPAN:7}/v{VERSION}/*.csv", "span-0020778/v{VERSION}/*.csv"),
        ("{YYYY}/{MM}/{DD}.csv", "2026/11/21.csv"),
        ("trips.csv", "trips.csv"),
    ],
)
def test_pattern_is_filled_as_tfx_fills_it(pattern, filled):
    assert at_span(pattern, span_number("2026-11-21")) == filled


@pytest.mark.parametrize(
    ("path", "pattern", "span"),
    [
        ("/data/2026-11-21.csv", "data/{YYYY}-{MM}-{DD}.csv", 20778),
        ("/data/2026/11/21/a.csv", "data/{YYYY}/{MM}/{DD}/*.csv", 20778),
        ("/data/span-0020778/v3/a.csv", "/data/span-{SPAN:7}/v{VERSION}/*.csv", 20778),
        ("/data/7.csv", "data/{SPAN}.csv", 7),
        ("/data/2026-13-01.csv", "data/{YYYY}-{MM}-{DD}.csv", None),
        ("/data/other.csv", "data/{YYYY}-{MM}-{DD}.csv", None),
        ("/data/7/a.csv", "data/{SPAN}", None),  # a folder: its files are named nowhere
    ],
)
def test_span_of_a_file_is_read_from_its_path(path, pattern, span):
    assert span_of(path, pattern) == span
