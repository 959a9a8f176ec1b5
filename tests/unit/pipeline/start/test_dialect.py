"""What parts the fields of a CSV."""

import shlex
import subprocess
import sys

import pytest

from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.dialect import Dialect, dialect_of


@pytest.mark.parametrize(
    ("text", "delimiter", "quote"),
    [
        ("a,b\n1,2\n", ",", '"'),
        ("\ufeffa;b\n1;2\n", ";", '"'),
        ('"a,x";b\n1;2\n', ";", '"'),
        ("a b\n1 2\n", " ", '"'),
        ('a "b c"\r\n1 2\r\n', " ", '"'),
        ("'a','b'\n1,2\n", ",", "'"),
        ("a,b\n1,'x, y'\n", ",", "'"),
        ("'a;x' b\n1 2\n", " ", "'"),
        ("'a;;x',b\n'c;;d','e,f'\n", ",", "'"),
        # Apostrophes that quote nothing.
        ("town,pop\n's-Hertogenbosch,160\n's-Gravenhage,540\n", ",", '"'),
        ("what,n\nthe 'quick' fox,1\n", ",", '"'),
        ("a,b\n'x',\"'y'\"\n", ",", '"'),
        ("a,b\n'x',1\n'it''s',2\n", ",", "'"),  # a column that is quoted
        ("text,label\n'Great!',1\n" + "ok,0\n" * 19, ",", '"'),
        ("text,label\n'Great!',1\n" + "ok,0\n" * 19 + '"Good, but",0\n\'tis fine,1\nbad,0\n', ",", '"'),
        ("a,b\n'x, y',1\n" + "ok,0\n" * 19 + "'tis fine,1\n", ",", '"'),
        ("a,b\n'x','1'\n" + "'y',0\n" * 19 + "z,0\n", ",", '"'),
        # Words that are no columns.
        ("text\ngood film\nbad film\n", ",", '"'),
        ("a text\na good film\na bad film\n", ",", '"'),
        ("a note\nonly one\nor three of them\n", ",", '"'),
        ("a\n1\n", ",", '"'),
        ("a b\n", ",", '"'),
        ("", ",", '"'),
        ("\n \n", ",", '"'),
    ],
)
def test_delimiter_and_quote_are_reported_by_the_first_lines(text, delimiter, quote):
    assert dialect_of(text.encode(), name="x.csv") == Dialect(delimiter, quote)


def test_a_line_that_the_head_cuts_does_not_count():
    rows = b"a b\n" + b"1 2\n" * 5
    assert dialect_of(rows + b"3", name="x.csv") == Dialect(" ", '"')


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("  a   b\n  1  20\n 10   2\n", ",a,b\n0,1,20\n1,10,2\n"),
        ('"a" "b"\n"r 1" 1 2\n"r 2" 3 4\n', ",a,b\nr 1,1,2\nr 2,3,4\n"),  # R's write.table
    ],
)
def test_columns_that_are_aligned_are_refused_with_a_command_that_rewrites_them(tmp_path, text, rewritten):
    (tmp_path / "my data.txt").write_text(text)
    with pytest.raises(UsageError, match="separated by several spaces") as refused:
        dialect_of(text.encode(), name="my data.txt")
    command = shlex.split(refused.value.hint, comments=True)
    assert command[0] == "python"
    subprocess.run([sys.executable, *command[1:3]], cwd=tmp_path, check=True)
    assert (tmp_path / "commas.csv").read_text() == rewritten


@pytest.mark.parametrize(
    "text",
    [
        "| a | y |\n|---|---|\n| 1 | no |\n",
        "| a | y |\n| :--- | ---: |\n| 1 | no |\n",
        "a | y\n--|--\n1 | no\n",
        " a | y \n---+---\n 1 | no\n(1 row)\n",
        "+---+----+\n| a | y  |\n+---+----+\n| 1 | no |\n+---+----+\n",
    ],
)
def test_tables_drawn_with_lines_are_refused_as_what_they_are(text):
    with pytest.raises(UsageError, match=r"t\.csv is a table drawn with lines, not a CSV") as refused:
        dialect_of(text.encode(), name="t.csv")
    assert "psql --csv" in refused.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n--,x\n",
        "a|b\n-|x\n",
        "a|b\n--x|y\n",
        "time\n10:30\n11:15\n",
        "a b\n1 10:30\n",
        # Read at once: a search anew at each dash would take hours.
        pytest.param(f"a|b\n{'-' * 1_000_000}x|y\n", id="dashes"),
    ],
)
def test_dashes_and_times_in_a_csv_draw_no_table(text):
    dialect_of(text.encode(), name="t.csv")


def test_libsvm_is_refused_with_a_command_that_rewrites_it(tmp_path):
    file = tmp_path / "rows of.txt"
    file.write_text("1 1:0.5 3:2\n-1 2:.1e-3\n+1 1:-0.3\n")
    with pytest.raises(UsageError, match="is in the format of libsvm") as refused:
        dialect_of(file.read_bytes(), name=str(file))
    program, *arguments = shlex.split(refused.value.hint.partition("   #")[0])
    assert program == "python"
    subprocess.run([sys.executable, *arguments], cwd=tmp_path, check=True)
    assert (tmp_path / "rows.csv").read_text().splitlines()[0] == "x0,x1,x2,y"
    assert (tmp_path / "rows.csv").read_text().splitlines()[2] == "0.0,0.0001,0.0,-1.0"
