"""Where text files may be cut: each piece with its first line and the number of rows before it."""

import json

import pytest

from slipway.components.ingest.blocks import InputFile
from slipway.components.ingest.options import Options
from slipway.components.ingest.text_pieces import csv_pieces, json_pieces

ROWS = b"".join(b"%d,name\n" % number for number in range(100))


def file_at(path):
    return InputFile(name=str(path), path=path)


def check_adjoin(pieces, content):
    """Check that there are several pieces, which are the content, and that their lines are counted."""
    assert len(pieces) > 5
    assert [piece.begin for piece in pieces] == [0, *(piece.end for piece in pieces[:-1])]
    assert pieces[-1].end == len(content)
    assert [piece.line for piece in pieces] == [content[: each.begin].count(b"\n") + 1 for each in pieces]


@pytest.mark.parametrize("names", [(), ("number", "name")], ids=["with a header", "without"])
def test_csv_is_cut_between_rows_which_are_counted_below_the_header(write, names):
    content = ROWS if names else b"number,name\n" + ROWS
    options = Options(block_bytes=100, column_names=names)
    pieces = csv_pieces(file_at(write(content)), options)
    check_adjoin(pieces, content)
    assert [piece.rows for piece in pieces[1:]] == [
        int(content[piece.begin :].split(b",")[0]) for piece in pieces[1:]
    ]


def test_json_lines_are_cut_between_lines_and_rows_are_counted_without_blank_ones(write):
    lines = [b'\xef\xbb\xbf{"number": 0}', *(b'{"number": %d}\n \n' % number for number in range(1, 100))]
    content = b"\n".join(lines)
    pieces = json_pieces(file_at(write(content, "rows.jsonl")), Options(format="jsonl", block_bytes=50))
    check_adjoin(pieces, content)
    assert [piece.rows for piece in pieces] == [content[: piece.begin].count(b"{") for piece in pieces]
    for piece in pieces[1:]:
        first = content[piece.begin :].split(b"\n")[0].strip()
        assert not first or json.loads(first)


def test_a_first_line_of_a_byte_order_mark_alone_is_no_row(write):
    content = b"\xef\xbb\xbf\n" + b'{"number": 1}\n' * 9
    pieces = json_pieces(file_at(write(content)), Options(format="jsonl", block_bytes=20))
    assert [piece.rows for piece in pieces] == [content[: piece.begin].count(b"{") for piece in pieces]


@pytest.mark.parametrize("pieces", [csv_pieces, json_pieces])
@pytest.mark.parametrize(
    ("name", "options"), [("rows.csv.gz", {}), ("rows.csv", {"encoding": "utf-16"})], ids=["gzip", "utf-16"]
)
def test_bytes_that_are_not_those_of_the_text_are_not_cut(write, pieces, name, options):
    assert pieces(file_at(write(ROWS, name)), Options(**options)) == []
