"""The heads of CSV files: their columns, or why a file is no table."""

import csv

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.components.errors import ComponentError
from slipway.components.ingest.csv_heads import HEAD_BYTES, check_csv
from slipway.components.ingest.source import SourceError, resolve_source


def test_columns_of_a_good_file_are_returned(trips):
    files = resolve_source("data", root=trips).files
    assert check_csv(files, label="tips") == ("miles", "tips")


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (b"", "is empty", "column names"),
        (b" \n\n", "is empty", "column names"),
        (b"miles,tips\n", "has a header but no rows", "rows below it"),
        (b"miles,tips\n\n\n", "has a header but no rows", "rows below it"),
        (b"miles,tip\n1,2\n", "has no column 'tips', which data.label names; nearest: 'tip'", "'tip'"),
        (b"miles,fare\n1,2\n", "has no column 'tips'", "there are miles, fare"),
        (b"miles;tips\n1;2\n", "has no column 'tips'", "separated by ';'"),
        (b"miles\ttips\n1\t2\n", "has no column 'tips'", "separated by '\\t'"),
        (b"miles tips\n1 2\n", "has no column 'tips'", "separated by ' '"),
        (b"tips,miles,tips\n1,2,3\n", "two columns are named 'tips' (1 and 3)", "rename"),
        (b"p,x,p\nq,y,q\n", "two columns are named 'p' (1 and 3)", "put a line with names above its rows"),
        (b"0,1,0\n2,3,1\n", "two columns are named '0' (1 and 3)", "put a line with names above its rows"),
        (b"# of 2021\nmiles,tips\n1,2\n", "has 2 values, the header 1 name", "remove what is above"),
        (b"tips,,miles\n1,2,3\n", "column 2 has no name", "only the first may be unnamed"),
        (b"tips,miles\n1,2,3\n", "the first row has 3 values, the header 2 names", "quote"),
        (b"tips,caf\xe9\n1,2\n", "is not UTF-8 text (line 1)", "data.encoding"),
        (b"\x1f\x8b\x08\x00\x00", "is a file compressed with gzip", "end its name in .gz"),
        (b"PK\x03\x04 is no table\n", "is a ZIP file, as the workbooks of Excel are", "save the sheet"),
        ("tips\n1\n".encode("utf-16"), "is not UTF-8 text", "data.encoding"),
        (b"PAR1\x00\x00\n", "is a Parquet file", "data.format"),
        (b"\x00\x01\n", "is not text", "data.format"),
        (b"tips," + b"x" * HEAD_BYTES + b"\n1,2\n", "no header and first row within", "column names"),
        (b"tips,\x1b[31m\n1\n", "the first row has 1 value,", "quote"),
    ],
)
def test_file_that_is_no_table_is_refused_with_the_remedy(tmp_path, content, message, hint):
    file = tmp_path / "in.csv"
    file.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        check_csv([file], label="tips")
    assert caught.value.message.startswith(str(file))
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_header_with_commas_where_others_are_set_is_recognised(tmp_path):
    file = tmp_path / "in.csv"
    file.write_bytes(b"miles,tips\n1,2\n")
    with pytest.raises(SourceError, match="has no column 'tips'") as caught:
        check_csv([file], label="tips", delimiter=";")
    assert caught.value.hint == "the header seems to be separated by ','; set data.delimiter"


@pytest.mark.parametrize(
    "broken", [b"caf\xe9,2", b"a\0b,2", b"1", b"1,2,3", b'"never closed,2', b'"a"b"c,"2']
)
@pytest.mark.parametrize("end", [b"", b","])
def test_broken_row_below_the_header_is_left_for_the_quarantine(tmp_path, ingest, broken, end):
    file = tmp_path / "in.csv"
    good = b"".join(b"%d,5%b\n" % (number, end) for number in range(1500))
    file.write_bytes(b"miles,tips\n" + broken + b"\n" + good)
    assert check_csv([file], label="tips", max_bad_share=0.001) == ("miles", "tips")
    found = ingest(file, split={"all": 1})
    assert (len(found.splits["all"]), len(found.rejects)) == (1500, 1)
    assert found.splits["all"][7] == {"miles": [7], "tips": [5]}


def test_file_with_more_lines_of_no_text_than_may_be_bad_is_refused_before_the_run(tmp_path):
    file = tmp_path / "in.csv"
    file.write_bytes(b"miles,tips\n" + b"1,2\n" * 997 + b"caf\xe9,2\n" * 2)
    with pytest.raises(SourceError, match=r"is not UTF-8 text \(line 999\)"):
        check_csv([file], label="tips", max_bad_share=0.001)
    assert check_csv([file], label="tips", max_bad_share=0.002) == ("miles", "tips")


def test_file_that_went_away_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"gone\.csv does not exist"):
        check_csv([tmp_path / "gone.csv"], label="tips")


def test_folder_in_place_of_a_file_is_named(tmp_path):
    with pytest.raises(SourceError, match="cannot be read: Is a directory"):
        check_csv([tmp_path], label="tips")


def test_quoted_names_line_ends_and_letters_of_any_script_are_kept(tmp_path):
    file = tmp_path / "in.csv"
    file.write_bytes('"tips, total","größe\u2028x"\r\n1,2\r\n'.encode())
    assert check_csv([file], label="tips, total") == ("tips, total", "größe\u2028x")


@pytest.mark.parametrize(
    ("header", "difference"),
    [
        ("tips,miles", "column 1 is 'tips', not 'miles'"),
        ("miles,tips,fare", "column 3 is 'fare', not no further column"),
        ("miles", "column 2 is no further column, not 'tips'"),
    ],
)
def test_files_with_different_headers_are_refused(trips, header, difference):
    (trips / "data/b.csv").write_text(f"{header}\n{','.join('1' * len(header.split(',')))}\n")
    with pytest.raises(SourceError) as caught:
        check_csv(resolve_source("data", root=trips).files, label="tips")
    assert difference in caught.value.message
    assert "b.csv has a different header from" in caught.value.message


def test_value_as_long_as_the_head_is_read(tmp_path):
    file = tmp_path / "texts.csv"
    file.write_text(f"text,label\n{'x' * 200_000},1\n")
    before = csv.field_size_limit()
    assert check_csv([file], label="label") == ("text", "label")
    assert csv.field_size_limit() == before


def test_only_the_head_of_a_large_file_is_read(tmp_path):
    file = tmp_path / "large.csv"
    row = b"1,2\n"
    # Bytes that are not UTF-8 lie behind the head, and a character is cut by its end.
    body = b"miles,tips\n" + row
    body += b"x" * (HEAD_BYTES - len(body)) + "é".encode() + b"\n" + b"\xff" * 10
    file.write_bytes(body)
    assert check_csv([file], label="tips") == ("miles", "tips")


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_any_bytes_are_a_table_or_refused(tmp_path, content):
    file = tmp_path / "any.csv"
    file.write_bytes(content)
    try:
        columns = check_csv([file], label="a")
    except SourceError as error:
        columns = (error.message.startswith(str(file)) and "a",)
    assert "a" in columns


def test_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    file = tmp_path / "in.csv"
    file.write_bytes(b"\xef\xbb\xbftips,miles\n1,2\n")
    assert check_csv([file], label="tips") == ("tips", "miles")


def test_other_delimiters_and_quotes_are_taken(tmp_path):
    file = tmp_path / "in.csv"
    file.write_bytes(b"'tips;x';miles\n'1;5';2\n")
    assert check_csv([file], label="miles", delimiter=";", quote="'") == ("tips;x", "miles")


def test_header_of_many_columns_is_checked_and_a_repeated_name_found(write):
    names = [f"c{index}" for index in range(20_000)]
    path = write(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert len(check_csv([path], label="c19999")) == 20_000
    path = write(",".join([*names, "c7"]) + "\n" + ",".join("1" for _ in [*names, 1]) + "\n")
    with pytest.raises(ComponentError, match=r"two columns are named 'c7' \(8 and 20001\)"):
        check_csv([path], label="c0")
