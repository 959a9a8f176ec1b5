"""Numbers and dates as people write them."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.ingest.notations import plain_dates, plain_numbers
from slipway.components.ingest.options import NumberFormat


@pytest.mark.parametrize(
    ("form", "written", "plain"),
    [
        ({"thousands": ","}, ["1,234", "-12,345,678.5", "7", " 8 ", "1,23", "12,3,567"],
         ["1234", "-12345678.5", "7", "8", "1,23", "12,3,567"]),
        ({"unit": "$", "thousands": ","}, ["$12.50", "-$5", "$-5", "$ 1,000", "12", "€5"],
         ["12.50", "-5", "-5", "1000", "12", "€5"]),
        ({"unit": "%"}, ["12%", "3.5 %", "-1%", "%", "% 5"], ["12", "3.5", "-1", "%", "5"]),
        # A number without the sign may be a share; zero is the same in both.
        ({"unit": "%"}, ["0.5", "7", " -1e-3", "1_0", "0", "-0.0", "half", "", "inf"],
         ["0.5 (without the % of data.numbers)", "7 (without the % of data.numbers)",
          " -1e-3 (without the % of data.numbers)", "1_0 (without the % of data.numbers)",
          "0", "-0.0", "half", "", "inf"]),
        ({"unit": "%", "decimal": ","}, ["0,5%", "0,5", "0.5", "0,0"],
         ["0.5", "0,5 (without the % of data.numbers)", "0.5 (without the % of data.numbers)", "0.0"]),
        ({"decimal": ","}, ["1,5", "-0,25", ",5", "3", "1.234", "x", "", "1.2.3", "inf"],
         ["1.5", "-0.25", ".5", "3", "1.234 (not as data.numbers says)", "x", "", "1.2.3", "inf"]),
        ({"decimal": ",", "thousands": "."}, ["1.234,5", "1.234", "12,5", "1.23"],
         ["1234.5", "1234", "12.5", "1.23 (not as data.numbers says)"]),
        ({"decimal": ",", "thousands": " ", "unit": "€"}, ["1 234,50 €", "1\u202f234 €"],
         ["1234.50", "1234"]),
        ({"decimal": ",", "thousands": ".", "unit": "€"}, ["1.234,50\u00a0€", "€\u202f-7"],
         ["1234.50", "-7"]),
        ({"thousands": "\u00a0", "unit": "\u00a0€"}, ["1\u00a0234\u00a0€", "1 234 €"], ["1234", "1234"]),
        ({"unit": "₹", "thousands": ","}, ["₹12,34,567.5", "1,00,000", "1,234,567", "12,34", "1,23,45"],
         ["1234567.5", "100000", "1234567", "12,34", "1,23,45"]),
        ({"thousands": "."}, ["12.34.567"], ["12.34.567"]),
        ({"unit": "%"}, ["12.5\u00a0%", "12.5\u202f%"], ["12.5", "12.5"]),
        ({"unit": "$", "thousands": ","}, ["($1,234.50)", "(7)", "(-7)", "(a)", "()", "\u2212$5"],
         ["-1234.50", "-7", "(-7)", "(a)", "()", "-5"]),
        ({"unit": "$", "thousands": ","}, ["$(1,234.50)", "$ (7)", "$(-7)"], ["-1234.50", "-7", "$(-7)"]),
        ({"clock": True}, ["1:05 PM", "12:00 am", "12:30:09 p.m.", "13:05 PM", "0:05 PM"],
         ["47100", "0", "45009", "13:05 PM", "0:05 PM"]),
        ({"clock": True}, ["2h 50m", "2H50M", "1 day, 2 hours", "45 min", "1 hr 5 mins 9 secs",
          "5 ms", "h", "2h 5"],
         ["10200", "10200", "93600", "2700", "3909", "5 ms", "h", "2h 5"]),
        ({"unit": "%"}, ["(3.5%)", "(3.5)%"], ["-3.5", "(3.5)%"]),
        ({}, ["(5)", "\u22122.5", "6"], ["-5", "-2.5", "6"]),
        ({"decimal": ",", "thousands": "."}, ["1.234,50-", "7-", "-7-", "1e-", "-", "(7-)", "12-15"],
         ["-1234.50", "-7", "-7-", "1e-", "-", "(7-)", "12-15"]),
        ({"unit": "€"}, ["5 €-", "€ 5-"], ["-5", "-5"]),
        ({"clock": True}, ["1:02:33", "02:33", "75:00", "-0:05",
                          "0 days 00:10:00.250", "1 day, 0:00:01", " 9:30 "],
         ["3753", "153", "4500", "-5", "600.250", "86401", "570"]),
        # As Python and pandas write a second less than nothing: only the days have the sign.
        ({"clock": True}, ["-1 day, 23:59:59", "-1 days +23:59:59", "-2 days +00:00:00.5", "0:07", "word"],
         ["-1", "-1", "-172799.5", "7", "word"]),
        ({"clock": True}, ["1:75:30", "1:2", "12:60", "1:02:03:04", "9999999:00", "word", ""],
         ["1:75:30", "1:2", "12:60", "1:02:03:04", "9999999:00", "word", ""]),
        ({}, ["1e3", "Infinity", "word", ""], ["1e3", "Infinity", "word", ""]),
    ],
)  # fmt: skip
def test_numbers_of_a_format_become_plain_and_others_stay_what_they_are(form, written, plain):
    assert plain_numbers(pa.array(written), NumberFormat(**form)).to_pylist() == plain


@pytest.mark.parametrize(
    ("form", "written", "plain"),
    [
        ("%d.%m.%Y", ["01.03.2021", "1.3.2021", "31.02.2021", "2021-03-01", ""],
         ["2021-03-01", "2021-03-01", "31.02.2021", "2021-03-01", ""]),
        ("%d.%m.%y", [" 01.03.21 ", " word "], ["2021-03-01", " word "]),
        ("%d.%m.%Y", ["01.03.21", "1.1.0001", None], ["01.03.21", "0001-01-01", None]),
        ("%m%d%Y", ["010224", "01022024"], ["010224", "2024-01-02"]),
        ("%m/%d/%Y %H:%M", ["3/4/2021 5:06"], ["2021-03-04 05:06:00"]),
        ("%Y/%m/%d", ["2012/01/31", "2012/1/3"], ["2012-01-31", "2012-01-03"]),
        ("%Y%m%d", ["20240131", "20240231"], ["2024-01-31", "20240231"]),
        ("%Y-%m", ["2024-03"], ["2024-03-01"]),
        ("%m/%d/%Y %I:%M %p", ["12/31/2024 1:05 pm", "12/31/2024 12:05 AM"],
         ["2024-12-31 13:05:00", "2024-12-31 00:05:00"]),
        ("%b %d %Y", ["Jan 1 2000", "January 12 2000"], ["2000-01-01", "2000-01-12"]),
        ("%d-%b-%Y", ["31-Feb-2021", "28-feb-2021", "30-February-2021"],
         ["31-Feb-2021", "2021-02-28", "30-February-2021"]),
        ("%d %b %Y %I:%M %p", ["31 Jun 2021 1:00 PM", "05 June  2021 1:00 pm"],
         ["31 Jun 2021 1:00 PM", "2021-06-05 13:00:00"]),
    ],
)  # fmt: skip
def test_dates_of_a_format_become_iso_dates(form, written, plain):
    assert plain_dates(pa.array(written), form).to_pylist() == plain


PRICES = ["$1,200.50", "n/a", "$7", ""]
SETTINGS = {
    "numbers": {"price": {"thousands": ",", "unit": "$"}},
    "dates": {"day": "%d.%m.%Y"},
    "null_values": ("n/a",),
    "split": {"all": 1},
}
DAYS = ["01.03.2021", "2.3.2021", "n/a", "31.12.1999"]
EXPECTED = [
    ([1200.5], [b"2021-03-01"]), ([], [b"2021-03-02"]), ([7.0], []), ([], [b"1999-12-31"])
]  # fmt: skip


def _read(found):
    return [(row["price"], row["day"]) for row in found.splits["all"]]


def test_a_csv_is_read_by_the_formats_of_its_columns(ingest, write):
    rows = "".join(f'"{price}",{day}\n' for price, day in zip(PRICES, DAYS, strict=True))
    assert _read(ingest(write("price,day\n" + rows), **SETTINGS)) == EXPECTED


def test_a_cell_that_is_not_written_so_is_rejected_as_no_number_where_the_schema_wants_one(ingest, write):
    from slipway.components.ingest.column_types import ColumnType

    known = {"price": ColumnType.FLOAT}
    found = ingest(write("price,day\n$5,\n5 apples,\n"), known=known, max_bad_share=1.0, **SETTINGS)
    [reject] = found.rejects
    assert (reject["column"], reject["reason"]) == ("price", "not a number")
    assert re.search("5 apples", reject["detail"])


@pytest.mark.parametrize("file_format", ["csv", "jsonl", "parquet"])
def test_a_share_among_percentages_is_quarantined(ingest, tmp_path, file_format):
    from slipway.components.ingest.column_types import ColumnType

    cells = ["45.5%", "0.5", "0"]
    path = tmp_path / f"rows.{file_format}"
    if file_format == "parquet":
        pq.write_table(pa.table({"n": cells}), path)
    else:
        lines = ["n", *cells] if file_format == "csv" else [json.dumps({"n": cell}) for cell in cells]
        path.write_text("\n".join(lines))
    found = ingest(
        path, format=file_format, known={"n": ColumnType.FLOAT}, numbers={"n": {"unit": "%"}},
        split={"all": 1}, max_bad_share=1.0,
    )  # fmt: skip
    assert [row["n"] for row in found.splits["all"]] == [[45.5], [0.0]]
    [reject] = found.rejects
    assert (reject["column"], reject["reason"]) == ("n", "not a number")
    assert "0.5 (without the % of data.numbers)" in reject["detail"]


@pytest.mark.parametrize("file_format", ["csv", "jsonl", "parquet"])
def test_a_number_with_a_point_where_the_fraction_has_a_comma_is_none(ingest, tmp_path, file_format):
    from slipway.components.ingest.column_types import ColumnType

    cells = ["1,5", "1.234", "7"]
    path = tmp_path / f"rows.{file_format}"
    if file_format == "parquet":
        pq.write_table(pa.table({"n": cells}), path)
    else:
        lines = ["n", *(f'"{cell}"' for cell in cells)]
        path.write_text("\n".join(lines if file_format == "csv" else [json.dumps({"n": n}) for n in cells]))
    found = ingest(
        path,
        format=file_format,
        known={"n": ColumnType.FLOAT},
        numbers={"n": {"decimal": ","}},
        max_bad_share=1.0,
        split={"all": 1},
    )
    assert [row["n"] for row in found.splits["all"]] == [[1.5], [7.0]]
    assert found.reasons == ["not a number"]
    assert "1.234 (not as data.numbers says)" in found.rejects[0]["detail"]


def test_json_lines_hold_numbers_in_quotes_and_dates(ingest, tmp_path):
    rows = [{"price": price, "day": day} for price, day in zip(PRICES, DAYS, strict=True)]
    rows[2]["price"] = 7  # not each is in quotes
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert _read(ingest(tmp_path / "rows.jsonl", format="jsonl", **SETTINGS)) == EXPECTED


def test_texts_of_parquet_are_read_by_the_formats_of_their_columns(ingest, tmp_path):
    pq.write_table(pa.table({"price": PRICES, "day": DAYS}), tmp_path / "rows.parquet")
    assert _read(ingest(tmp_path / "rows.parquet", format="parquet", **SETTINGS)) == EXPECTED


def test_dates_that_are_whole_numbers_are_read_in_files_with_types(ingest, tmp_path):
    days = {"day": [20240131, None, 20240229]}
    pq.write_table(pa.table(days), tmp_path / "rows.parquet")
    lines = [json.dumps({"day": day}) for day in days["day"]]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    for file in ("rows.parquet", "rows.jsonl"):
        settings = {"dates": {"day": "%Y%m%d"}, "split": {"all": 1}}
        found = ingest(tmp_path / file, format=file.partition(".")[2], **settings)
        assert [row["day"] for row in found.splits["all"]] == [[b"2024-01-31"], [], [b"2024-02-29"]]


@pytest.mark.parametrize("file_format", ["jsonl", "parquet"])
def test_number_in_quotes_that_no_type_holds_is_read_or_rejected_as_one_without_quotes(
    ingest, tmp_path, file_format
):
    numbers = ["7", "1e400", "-1e400", "99999999999999999999999", "inf"]
    path = tmp_path / f"rows.{file_format}"
    if file_format == "jsonl":
        path.write_text("\n".join(json.dumps({"n": each}) for each in numbers), encoding="utf-8")
    else:
        pq.write_table(pa.table({"n": numbers}), path)
    found = ingest(path, format=file_format, numbers={"n": {}}, split={"all": 1})
    assert [row["n"] for row in found.splits["all"]] == [[7.0], [pytest.approx(1e23)], [float("inf")]]
    assert found.reasons == ["a number beyond 32-bit fractions"] * 2


def test_whole_number_in_quotes_beyond_64_bits_is_read_where_no_other_is_a_fraction(ingest, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": "99999999999999999999999"}\n{"n": "7"}\n', encoding="utf-8")
    found = ingest(path, format="jsonl", numbers={"n": {}}, split={"all": 1})
    assert [row["n"] for row in found.splits["all"]] == [[pytest.approx(1e23)], [7.0]]


def test_json_number_behind_thousands_of_zeros_is_a_number(ingest, write):
    path = write('{"n": "$%s"}\n{"n": "$2"}\n' % ("0" * 5000 + "1"), "in.jsonl")
    found = ingest(path, format="jsonl", numbers={"n": {"unit": "$"}}, split={"all": 1})
    assert [row["n"] for row in found.rows] == [[1.0], [2.0]]
