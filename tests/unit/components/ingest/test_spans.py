"""Spans of a data source."""

from pathlib import Path

import pytest

from slipway.components.ingest.spans import at_span, by_span, span_kind, span_number


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
def test_by_span_a_file_is_read_from_its_path(path, pattern, span):
    file = Path(path)
    assert by_span([file], [pattern]) == ({} if span is None else {span: [file]})


def test_files_of_a_span_are_those_of_all_splits():
    files = [Path(f"/data/{name}.csv") for name in ("train-1", "eval-1", "train-2", "train-x")]
    assert by_span(files, ["/data/train-{SPAN}.csv", "/data/eval-{SPAN}.csv"]) == {
        1: files[:2],
        2: files[2:3],
    }
