"""The span of its tables that a query takes."""

import pytest

from slipway.components.ingest.query.table_spans import at_one_span
from slipway.components.ingest.query.tables import QueryError, Table
from slipway.components.ingest.source import SourceError


@pytest.fixture
def chosen(tmp_path):
    """The places of tables at a span, and its number; the files are there, and empty."""

    def call(*places, files, span=None):
        for file in files:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).touch()
        tables = [Table(name=f"t{index}", kind="files", place=place) for index, place in enumerate(places)]
        found, number = at_one_span(tables, span=span, root=tmp_path)
        return [table.place for table in found], number

    return call


def test_without_spans_tables_stay_as_they_are(chosen):
    assert chosen("a.csv", files=["a.csv"]) == (["a.csv"], None)


def test_the_latest_span_is_taken_by_its_number(chosen):
    files = ["d/span-9/a.csv", "d/span-10/a.csv", "d/span-x/a.csv"]
    assert chosen("d/span-{SPAN}/*.csv", files=files) == (["d/span-10/*.csv"], 10)


def test_the_latest_day_is_one_that_all_tables_have(chosen):
    files = ["a/2026-11-19.csv", "a/2026-11-20.csv", "a/2026-13-01.csv", "b/2026-11-19.csv", "zones.csv"]
    places = ("a/{YYYY}-{MM}-{DD}.csv", "b/{YYYY}-{MM}-{DD}.csv", "zones.csv")
    assert chosen(*places, files=files) == (["a/2026-11-19.csv", "b/2026-11-19.csv", "zones.csv"], 20776)


def test_a_named_span_is_taken(chosen):
    assert chosen("{SPAN:3}.csv", files=["007.csv", "008.csv"], span=7) == (["007.csv"], 7)
    place = "{YYYY}/{MM}/{DD}.csv"
    assert chosen(place, files=["2026/11/19.csv"], span="2026-11-19") == (["2026/11/19.csv"], 20776)


@pytest.mark.parametrize(
    ("places", "words"),
    [
        (("{SPAN}.csv", "{YYYY}-{MM}-{DD}.csv"), "one kind of span"),
        (("{SPAN}/v{VERSION}.csv",), "no {VERSION}"),
        (("{YYYY}.csv",), "one kind of span"),
        (("a-{SPAN}.csv", "b-{SPAN}.csv"), "no span in common"),
    ],
)
def test_spans_that_do_not_fit_are_refused(chosen, places, words):
    files = ["1.csv", "2026-11-19.csv", "1/v1.csv", "a-1.csv", "b-2.csv"]
    with pytest.raises(QueryError, match=words):
        chosen(*places, files=files)


def test_a_table_without_files_is_reported(chosen):
    with pytest.raises(SourceError, match="matches no file"):
        chosen("{SPAN}.csv", files=["a.txt"])
