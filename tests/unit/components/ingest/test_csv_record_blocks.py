"""CSV: quotes that stand where none should be cost the rows that they may belong to, and make none."""

import numpy as np
import pytest
from counted import lines_run

from slipway.components.ingest import csv_record_blocks as csv_records

ALL = {"split": {"all": 1}}


def _read(ingest, write, text, **settings):
    found = ingest(write(text), **ALL, **settings)
    rows = [tuple(row[name][0] for name in sorted(row)) for row in found.rows]
    return rows, [(r["line"], r["reason"], r["raw"]) for r in found.rejects]


@pytest.fixture(params=[5, 64, 1 << 20])
def block_bytes(request):
    return request.param


def test_lines_inside_a_quoted_cell_of_a_short_record_are_no_rows(ingest, write, block_bytes):
    text = 'a,b,c\n"x\n1,2,3\ny",z\n4,5,6\n'
    rows, rejects = _read(ingest, write, text, block_bytes=block_bytes)
    assert rows == [(4, 5, 6)]
    assert rejects == [
        (2, "too few fields", '"x'),
        (3, "too few fields", "1,2,3"),
        (4, "too few fields", 'y",z'),
    ]


def test_a_quote_inside_a_field_does_not_open_the_cell_behind_it(ingest, write, block_bytes):
    text = 'a,b\n1,5" pipe\n2,"first line\n3,second"\n4,x\n5,"y ""z"""\n'
    rows, rejects = _read(ingest, write, text, block_bytes=block_bytes)
    assert rows == [(1, b'5" pipe'), (2, b"first line\n3,second"), (4, b"x"), (5, b'y "z"')]
    assert rejects == []


def test_a_quote_that_is_not_closed_costs_its_line_and_the_next_cell_is_whole(ingest, write, block_bytes):
    text = 'a,b\n1,"never closed\n2,good\n3,"first line\n4,second"\n5,x\n'
    rows, rejects = _read(ingest, write, text, block_bytes=block_bytes)
    assert rows == [(2, b"good"), (3, b"first line\n4,second"), (5, b"x")]
    assert rejects == [(2, "broken quotes", '1,"never closed')]


def test_a_cell_with_a_quote_too_many_gives_no_row_from_its_middle(ingest, write, block_bytes):
    text = 'a,b\n0,x\n1,"first\n2,middle\n3,last"y\n4,z\n'
    rows, rejects = _read(ingest, write, text, block_bytes=block_bytes)
    assert rows == [(0, b"x"), (4, b"z")]
    assert rejects == [
        (3, "broken quotes", '1,"first'),
        (4, "broken quotes", "2,middle"),
        (5, "broken quotes", '3,last"y'),
    ]


def test_byte_order_mark_before_a_quoted_name_of_two_lines(ingest, write, block_bytes):
    text = '\ufeff"a\nb",c\n1,2\n3,4" pipe\n'
    found = ingest(write(text), block_bytes=block_bytes, **ALL)
    assert found.rows == [{"a\nb": [1], "c": [b"2"]}, {"a\nb": [3], "c": [b'4" pipe']}]


def test_lines_that_end_with_two_returns_are_whole(ingest, write, block_bytes):
    rows, rejects = _read(ingest, write, "a,b\r\r\n1,x\r\r\n2,y\r\r\n", block_bytes=block_bytes)
    assert rows == [(1, b"x"), (2, b"y")]
    assert rejects == []


@pytest.mark.parametrize("bad", ["{i},bad,{i}", '{i},"never closed'])
def test_work_for_bad_rows_grows_with_their_number_and_not_with_its_square(ingest, write, monkeypatch, bad):
    looked_at = []
    records = csv_records._Marks.records
    monkeypatch.setattr(
        csv_records._Marks,
        "records",
        lambda self, data, *given, **named: (
            looked_at.append(len(data)) or records(self, data, *given, **named)
        ),
    )

    def work(rows):
        path = write("a,b\n" + "".join(f"{bad.format(i=i)}\n" for i in range(rows)))
        looked_at.clear()
        lines = lines_run(lambda: ingest(path))
        return lines, sum(looked_at)

    few, many = work(500), work(2000)
    print(few, many)
    assert many[0] < 4.2 * few[0]
    assert many[1] < 4.5 * few[1]
    # The line of a place is looked up among the newlines; the bytes before it are not counted through.
    found = csv_records.Records(b"", *2 * [np.arange(0)], 0, line=7, newlines=np.array([3, 9]))
    assert [found.line_of(start) for start in (0, 4, 10)] == [7, 8, 9]
