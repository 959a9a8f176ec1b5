"""Rows of raw files that show a finding."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.data_gate.finding import Finding, RowQuery
from slipway.components.data_gate.raw_rows import matches, with_rows
from slipway.components.ingest.options import Options

HEADER = "fare,pay,note\n"


def rows_for(query, files, features=("fare", "pay", "note"), **options):
    finding = Finding("domain", query.column, (), "", query=query)
    text = Options(**options).to_json()
    [found] = with_rows(
        [finding], files=[str(file) for file in files], features=features, options=text, splits=()
    )
    return [(row.file, row.line, row.value) for row in found.rows]


@pytest.fixture
def csv(tmp_path):
    def call(text, name="trips.csv"):
        (tmp_path / name).write_text(HEADER + text, encoding="utf-8")
        return tmp_path / name

    return call


def test_lines_of_a_csv_count_as_an_editor_counts_them(csv):
    file = csv('1,Cash,"two\nlines"\n2,Pcard,\n3,Cash,\n4,Pcard,"a, b"\n')
    found = rows_for(RowQuery("pay", values=("Pcard",)), [file])
    assert found == [("trips.csv", 4, "Pcard"), ("trips.csv", 6, "Pcard")]


def test_numbers_beyond_a_bound_and_empty_cells_are_found(csv):
    file = csv("5,Cash,\n-1,Cash,\n999,Cash,\n,Cash,\n")
    assert rows_for(RowQuery("fare", below=0, above=100), [file]) == [
        ("trips.csv", 3, "-1"),
        ("trips.csv", 4, "999"),
    ]
    assert rows_for(RowQuery("fare", is_missing=True), [file]) == [("trips.csv", 5, "")]


def test_rows_of_a_stretch_of_numbers_are_found_with_its_end_and_without_its_beginning(csv):
    file = csv("1,Cash,\n2,Cash,\n2.5,Cash,\n3,Cash,\n,Cash,\n")
    assert [line for _, line, _ in rows_for(RowQuery("fare", within=(1, 2.5)), [file])] == [3, 4]
    assert [line for _, line, _ in rows_for(RowQuery("fare", within=(None, 1)), [file])] == [2]
    assert [line for _, line, _ in rows_for(RowQuery("fare", within=(2.5, None)), [file])] == [5]


def test_every_row_with_a_value_shows_what_is_wrong_with_all(csv):
    file = csv(",Cash,\n2,Cash,\n3,Cash,\n")
    assert rows_for(RowQuery("fare"), [file]) == [("trips.csv", 3, "2"), ("trips.csv", 4, "3")]


def test_two_columns_are_shown_side_by_side_by_rows_that_differ(csv):
    file = csv("1,Cash,\n1,Cash,\n1,Cash,\n2,Card,\n1,Card,\n" + "1,Cash,\n" * 9)
    assert rows_for(RowQuery("fare", beside="pay"), [file]) == [
        ("trips.csv", 2, "fare 1, pay Cash"),
        ("trips.csv", 5, "fare 2, pay Card"),
        ("trips.csv", 6, "fare 1, pay Card"),
        ("trips.csv", 3, "fare 1, pay Cash"),
        ("trips.csv", 4, "fare 1, pay Cash"),
    ]


def test_rows_of_the_examples_are_found_again_by_all_their_columns(csv):
    file = csv("0.1,Cash,x\n0.1,Card,x\n0.2,Card,x\n0.1,Card,\n0.10,Card,x\nmany,Card,x\n")
    # What an Example holds of 0.1.
    like = ({"fare": 0.10000000149011612, "pay": "Card", "note": "x"},)
    assert [line for _, line, _ in rows_for(RowQuery("fare", like=like), [file])] == [3, 6]
    empty = ({"fare": 0.10000000149011612, "pay": "Card", "note": None},)
    assert [line for _, line, _ in rows_for(RowQuery("pay", like=empty), [file])] == [5]


def test_equal_pairs_without_end_are_not_searched_without_end(csv):
    file = csv("1,Cash,\n" * 2_100 + "2,Card,\n")
    found = rows_for(RowQuery("fare", beside="pay"), [file])
    assert [line for _, line, _ in found] == [2, 3, 4, 5, 6]


def test_five_rows_are_enough_and_files_are_read_in_order(csv):
    first = csv("1,x,\n" * 3, "a.csv")
    second = csv("1,x,\n" * 9, "b.csv")
    found = rows_for(RowQuery("pay", values=("x",)), [first, second])
    assert [(file, line) for file, line, _ in found] == [
        ("a.csv", 2), ("a.csv", 3), ("a.csv", 4), ("b.csv", 2), ("b.csv", 3),
    ]  # fmt: skip


def test_options_of_ingest_count(tmp_path):
    file = tmp_path / "trips.csv.gz"
    with gzip.open(file, "wt", encoding="latin-1") as stream:
        stream.write("fare;pay;note\n1;Münze;\n")
    found = rows_for(RowQuery("pay", values=("Münze",)), [file], delimiter=";", encoding="latin-1")
    assert found == [("trips.csv.gz", 2, "Münze")]


def test_json_lines_have_lines_and_parquet_has_rows(tmp_path):
    lines = tmp_path / "a.jsonl"
    lines.write_text("".join(json.dumps({"fare": 1.0, "pay": pay}) + "\n" for pay in ("Cash", "Pcard")))
    query = RowQuery("pay", values=("Pcard",))
    assert rows_for(query, [lines], ("fare", "pay"), format="jsonl") == [("a.jsonl", 2, "Pcard")]
    table = tmp_path / "a.parquet"
    pq.write_table(pa.table({"fare": [1.0, 2.0, 500.0], "pay": ["Cash"] * 3}), table)
    finding = Finding("domain", "fare", (), "", query=RowQuery("fare", above=100))
    options = Options(format="parquet").to_json()
    [found] = with_rows([finding], files=[str(table)], features=("fare", "pay"), options=options, splits=())
    assert [(row.line, row.row) for row in found.rows] == [(None, 2)]


def test_file_that_is_gone_remote_or_broken_only_costs_the_rows(csv, tmp_path):
    broken = tmp_path / "broken.csv.gz"
    broken.write_bytes(b"no gzip")
    good = csv("1,x,\n")
    files = [tmp_path / "gone.csv", "gs://bucket/trips.csv", broken, good]
    assert rows_for(RowQuery("pay", values=("x",)), files) == [("trips.csv", 2, "x")]


def test_rows_of_a_finding_about_one_split_are_reported_as_of_all_splits_and_only_once(csv):
    file = csv("1,Cash,\n,Cash,\n,Cash,\n3,Card,\n")
    query = RowQuery("fare", is_missing=True)
    findings = [
        Finding("label", "fare", ("train",), "1 of 3 rows (33.33%) has no label", query=query),
        Finding("label", "fare", ("eval",), "1 of 1 rows (100%) has no label", query=query),
        Finding("missing", "fare", ("train", "eval"), "2 of 4 rows (50%) have no value", query=query),
        Finding("drift", "pay", ("train",), "what", query=RowQuery("pay", values=("Nobody",))),
    ]
    found = with_rows(
        findings,
        files=[str(file)],
        features=("fare", "pay"),
        options=Options().to_json(),
        splits=["train", "eval"],
    )
    assert [finding.lines()[1:] for finding in found] == [
        ["  rows of all splits: trips.csv line 3, 4"],
        ["  rows of all splits: those of fare (train), above"],
        ["  rows: trips.csv line 3, 4"],
        [],
    ]


def test_findings_without_a_query_read_no_file(tmp_path):
    finding = Finding("rows", "", (), "")
    assert with_rows([finding], files=["/nowhere"], features=(), options=Options().to_json(), splits=()) == (
        finding,
    )


@pytest.mark.parametrize(
    ("cell", "query", "is_match"),
    [
        ("x", RowQuery("c", values=("x",)), True),
        ("y", RowQuery("c", values=("x",)), False),
        (3, RowQuery("c", values=("3",)), True),
        (["a", "x"], RowQuery("c", values=("x",)), True),
        ("5", RowQuery("c", above=4), True),
        ("4", RowQuery("c", above=4), False),
        ("3.9", RowQuery("c", below=4), True),
        ("many", RowQuery("c", below=4), False),
        (None, RowQuery("c", below=4), False),
        ("", RowQuery("c", values=("",)), False),
        ("", RowQuery("c", is_missing=True), True),
        ([], RowQuery("c", is_missing=True), True),
        (0, RowQuery("c", is_missing=True), False),
    ],
)
def test_cell_matches_as_asked(cell, query, is_match):
    assert matches(cell, query) == is_match
