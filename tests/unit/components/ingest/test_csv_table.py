"""CSV: what rows become, and what bad files and bad rows get."""

import bz2
import gzip
import random
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.components.errors import ComponentError
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.header_names import INDEX
from slipway.components.ingest.quarantine import Tally
from slipway.components.ingest.source_limits import SourceLimits


def test_whole_numbers_fractions_and_text_get_their_types(ingest, write):
    found = ingest(write("n,x,s,e\n1,1.5,a,\n-2,2,é,\n,,,\n"), split={"all": 1})
    assert found.rows == [
        {"n": [1], "x": [1.5], "s": [b"a"], "e": None},
        {"n": [-2], "x": [2.0], "s": ["é".encode()], "e": None},
        {"n": [], "x": [], "s": [], "e": None},
    ]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["007", "8"], [[b"007"], [b"8"]]),  # a code, not a number
        (["0", "-0", "10"], [[0], [0], [10]]),
        (["0.5", "00.5"], [[0.5], [0.5]]),
        (["+5", " 6"], [[5], [6]]),
        (["1_000"], [[1000]]),
        (["0x1F"], [[b"0x1F"]]),
        (["9223372036854775807"], [[2**63 - 1]]),
        (["9223372036854775808"], [[b"9223372036854775808"]]),
        (["1e3", "nan"], [[1000.0], ["nan"]]),
        (["nan(1)"], [[b"nan(1)"]]),
        (["1", "2", "three"], [[b"1"], [b"2"], [b"three"]]),  # changes type halfway
        (["1", "2.5"], [[1.0], [2.5]]),
        (["NA", "1"], [[b"NA"], [b"1"]]),
        (["True"], [[b"True"]]),
    ],
)
def test_type_of_a_column_is_that_of_all_its_cells(ingest, write, cells, expected):
    found = ingest(write("c\n" + "".join(f"{cell}\n" for cell in cells)), split={"all": 1})
    values = [row["c"] for row in found.rows]
    assert [["nan"] if value != value else value for value in values] == expected or [
        [str(v) if v != v else v for v in value] for value in values
    ] == expected


def test_column_that_changes_type_in_a_later_block_or_file_is_read_alike_everywhere(ingest, write):
    write("c\n" + "1\n" * 5000, "a.csv")
    path = write("c\n" + "2\n" * 5000 + "x\n", "b.csv")
    found = ingest(path.parent / "*.csv", split={"all": 1}, block_bytes=256)
    assert {type(value) for row in found.rows for value in row["c"]} == {bytes}
    assert len(found.rows) == 10_001


def test_types_that_are_known_are_not_guessed_and_cells_that_break_them_are_quarantined(ingest, write):
    known = {"n": ColumnType.INT, "x": ColumnType.FLOAT, "s": ColumnType.TEXT}
    found = ingest(write("n,x,s\n007,1,5\nx,2,6\n8,y,7\n"), known=known, split={"all": 1})
    assert found.rows == [{"n": [7], "x": [1.0], "s": [b"5"]}]
    assert [(r["line"], r["column"], r["reason"], r["raw"]) for r in found.rejects] == [
        (3, "n", "not a whole number", "x,2,6"),
        (4, "x", "not a number", "8,y,7"),
    ]


def test_quoted_delimiters_quotes_newlines_and_blank_lines(ingest, write):
    found = ingest(write('a,"b ""x"", c"\r\n"1,5","p\nq"\r\n\r\n"","say ""hi"""\r\n'), split={"all": 1})
    assert found.rows == [
        {"a": [b"1,5"], 'b "x", c': [b"p\nq"]},
        {"a": [], 'b "x", c': [b'say "hi"']},
    ]


@pytest.mark.parametrize("block_bytes", [3, 7, 64, 4096])
def test_blocks_do_not_show_in_the_result(ingest, write, block_bytes):
    text = "a,b\n" + "".join(f'{i},"x\ny ""{i}"""\n' if i % 3 else f"{i},\n" for i in range(50))
    found = ingest(write(text), split={"all": 1}, block_bytes=block_bytes)
    assert [row["a"] for row in found.rows] == [[i] for i in range(50)]
    assert [row["b"] for row in found.rows] == [[f'x\ny "{i}"'.encode()] if i % 3 else [] for i in range(50)]


def test_other_delimiter_quote_encoding_names_and_null_values(ingest, write):
    path = write("1;'a;b';NA\n2;é;-\n".encode("latin-1"))
    found = ingest(
        path,
        split={"all": 1},
        delimiter=";",
        quote="'",
        encoding="latin-1",
        column_names=("n", "s", "x"),
        columns=("n", "s", "x"),
        null_values=("NA", "-"),
    )
    assert found.rows == [
        {"n": [1], "s": [b"a;b"], "x": None},
        {"n": [2], "s": ["é".encode()], "x": None},
    ]


def test_chosen_columns_only(ingest, write):
    assert ingest(write("a,b,c\n1,2,3\n"), split={"all": 1}, columns=("c", "a")).rows == [
        {"a": [1], "c": [3]}
    ]
    with pytest.raises(ComponentError, match=r"has no column 'd', which data\.columns names"):
        ingest(write("a,b,c\n1,2,3\n"), columns=("d",))


def test_byte_order_mark_is_no_part_of_a_name(ingest, write):
    assert ingest(write("\ufeffa,b\n1,2\n"), split={"all": 1}).rows == [{"a": [1], "b": [2]}]
    assert ingest(write('\ufeff"a",b\n1,2\n'), split={"all": 1}).rows == [{"a": [1], "b": [2]}]


def test_utf16_is_named_and_read_when_told_so(ingest, write):
    path = write("a,b\n1,é\n".encode("utf-16"))
    with pytest.raises(FileError) as caught:
        ingest(path)
    assert caught.value.hint == "set data.encoding: utf-16"
    assert ingest(path, split={"all": 1}, encoding="utf-16").rows == [{"a": [1], "b": ["é".encode()]}]


@pytest.mark.parametrize("encoding", ["cp1252", "shift_jis"])
def test_file_of_another_encoding_is_told_with_the_name_that_was_given(ingest, write, encoding):
    with pytest.raises(FileError) as caught:
        ingest(write(b"a,b\n\x81\xff,2\n"), encoding=encoding)
    assert caught.value.hint == f"it is not {encoding} throughout; check data.encoding"


def test_lines_that_end_in_cr_alone_are_reported_with_the_command(ingest, write):
    with pytest.raises(FileError, match="its lines end in CR alone") as caught:
        ingest(write(b"a,b\r1,2\r3,4\r"))
    assert caught.value.hint.startswith(r"tr '\r' '\n' < ")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_compressed_files_are_unpacked(ingest, write, suffix):
    zstandard = pytest.importorskip("zstandard")
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}[suffix]
    packed = pack(b"a\n" + b"1\n" * 1000)
    assert len(ingest(write(packed, f"in.csv{suffix}")).rows) == 1000
    with pytest.raises(FileError, match=r"damaged or cut short after \d+ bytes: Truncated") as caught:
        ingest(write(packed[:-5], f"cut.csv{suffix}"))
    assert f"cut.csv{suffix}" in caught.value.message
    assert "copy it again" in caught.value.hint


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_compressed_file_with_a_wrong_checksum_is_damaged(ingest, write, suffix):
    zstandard = pytest.importorskip("zstandard")
    pack = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor(write_checksum=True).compress}[suffix]
    packed = bytearray(pack(b"a\n" + b"1\n" * 1000))
    packed[-5 if suffix == ".gz" else -1] ^= 1
    with pytest.raises(FileError, match="damaged or cut short"):
        ingest(write(bytes(packed), f"in.csv{suffix}"))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_files_that_were_packed_one_by_one_and_joined_are_unpacked(ingest, write, suffix):
    zstandard = pytest.importorskip("zstandard")
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}[suffix]
    joined = [pack(b""), pack(b"a\n1\n"), pack(b"2\n")]
    assert len(ingest(write(b"".join(joined), f"in.csv{suffix}")).rows) == 2


def test_bzip2_whose_library_fails_at_an_empty_part_is_refused_with_the_command(ingest, write):
    path = write(bz2.compress(b"a\n1\n") + bz2.compress(b"") + bz2.compress(b"2\n"), "in.csv.bz2")
    with pytest.raises(FileError, match=r"in\.csv\.bz2 cannot be unpacked after 0 bytes") as caught:
        ingest(path)
    assert caught.value.hint.endswith(f"bunzip2 < {path} | bzip2 > new.bz2")


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        (b"1", "too few fields", "1 fields, not 2"),
        (b"1,2,3", "too many fields", "3 fields, not 2"),
        (b"1,caf\xe9", "not valid text", ""),
        (b"1,a\0b", "a NUL byte", ""),
        (b'1,"x"y', "broken quotes", ""),
        (b"1," + b"x" * 5000, "longer than the limit", "more than data.limits.row_bytes (4,000)"),
        (b'1,"' + b"x" * 5000, "longer than the limit", "more than data.limits.row_bytes (4,000)"),
    ],
)
@pytest.mark.parametrize("where", [0, 20, 39])
def test_bad_row_is_quarantined_with_its_place_and_no_other(ingest, write, line, reason, detail, where):
    lines = [b"%d,good" % i for i in range(40)]
    lines[where] = line
    path = write(b"a,b\n" + b"\n".join(lines) + b"\n")
    found = ingest(path, split={"all": 1}, limits=SourceLimits(row_bytes=4000), block_bytes=1000)
    assert sorted(row["a"][0] for row in found.rows) == [i for i in range(40) if i != where]
    [reject] = found.rejects
    assert (reject["file"], reject["line"], reject["reason"], reject["detail"]) == (
        str(path), where + 2, reason, detail,
    )  # fmt: skip
    assert path.read_bytes()[reject["offset"] :].startswith(line[:1000])


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("block_bytes", [7, 1 << 20])
def test_header_between_files_that_were_put_behind_each_other_is_no_row(ingest, write, mark, block_bytes):
    part = f'{mark}fare,"the company"\n1.5,a\n2,"x, y"\n'

    found = ingest(write(part * 3), split={"all": 1}, max_bad_share=1.0, block_bytes=block_bytes)

    assert (
        found.rows == [{"fare": [1.5], "the company": [b"a"]}, {"fare": [2.0], "the company": [b"x, y"]}] * 3
    )
    assert [(r["reason"], r["line"]) for r in found.rejects] == [
        ("the line of column names again", 4),
        ("the line of column names again", 7),
    ]


def test_header_of_names_that_are_given_is_no_row(ingest, write):
    found = ingest(write("a,b\n1,2\n"), split={"all": 1}, max_bad_share=1.0, column_names=("a", "b"))

    assert found.rows == [{"a": [1], "b": [2]}]
    assert [r["reason"] for r in found.rejects] == ["the line of column names again"]


def test_cell_that_is_called_as_its_only_column_stays(ingest, write):
    assert len(ingest(write("word\na\nword\n"), split={"all": 1}).rows) == 2


@pytest.mark.parametrize("block_bytes", [16, 100_000])
def test_quote_that_never_closes_costs_its_own_line_only(ingest, write, block_bytes):
    rows = [f"{i},good" for i in range(30)]
    rows[10] = '10,"never closed'
    found = ingest(write("a,b\n" + "\n".join(rows)), split={"all": 1}, block_bytes=block_bytes)
    assert [row["a"][0] for row in found.rows] == [i for i in range(30) if i != 10]
    assert [(r["line"], r["reason"]) for r in found.rejects] == [(12, "broken quotes")]


def test_quote_that_never_closes_in_a_large_file_costs_no_memory_for_the_rest(ingest, write, peak_mb):
    rows = b"".join(b"%d,good\n" % i for i in range(1_500_000))
    path = write(b'a,b\n0,"never closed\n' + rows)
    ingest(write("a,b\n0,good\n", "small.csv"))  # imports, and makes what is made once
    # The rows are not read back: that alone would take more than the ingest.
    found, grown_mb = peak_mb(lambda: ingest(path, split={"all": 1}, read_back=False))
    assert grown_mb < 120
    assert found.report.tally.rows_out == {"all": 1_500_000}
    assert [(r["line"], r["reason"]) for r in found.rejects] == [(2, "broken quotes")]


def test_quote_inside_an_unquoted_field_is_a_letter(ingest, write):
    found = ingest(write('a,b\n1,5" pipe\n2,x\n3,7" pipe\n4,y\n'), split={"all": 1})
    assert [row["b"] for row in found.rows] == [[b'5" pipe'], [b"x"], [b'7" pipe'], [b"y"]]


@pytest.mark.parametrize("before", [b"2,", b'2,"'])
def test_hundred_megabytes_on_one_line_take_little_memory_and_one_row(ingest, write, peak_mb, before):
    path = write(b"a,b\n1,x\n" + before + b"y" * 100_000_000 + b"\n3,z\n")
    found, grown_mb = peak_mb(lambda: ingest(path, split={"all": 1}))
    assert grown_mb < 60
    assert [row["a"] for row in found.rows] == [[1], [3]]
    [reject] = found.rejects
    assert (reject["line"], reject["reason"]) == (3, "longer than the limit")
    assert len(reject["raw"]) <= 64 * 1024 < reject["raw_bytes"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,a\n1,2\n", "two columns are named 'a' (1 and 2)"),
        (b"a,\n1,2\n", "column 2 has no name"),
        (b"a\0b\n1\n", "has no readable header: a NUL byte"),
        (b"\xff\x01\n1\n", "has no readable header: not valid text"),
        (gzip.compress(b"a\n1\n", mtime=0), "is a file compressed with gzip"),
    ],
)
def test_file_that_is_no_table_is_refused(ingest, write, content, message):
    with pytest.raises(FileError) as caught:
        ingest(write(content))
    assert message in caught.value.message
    assert "in.csv" in caught.value.message
    assert caught.value.hint


def test_first_column_without_a_name_is_the_index_and_no_feature(ingest, write):
    found = ingest(write(",a\n0,x\n1,y\n"), split={"all": 1})
    assert found.rows == [{"a": [b"x"]}, {"a": [b"y"]}]
    assert found.report.tally.has_index
    assert Tally.from_json(found.report.tally.to_json()).has_index


def test_index_can_decide_over_the_split_and_be_named_as_a_feature(ingest, write):
    path = write('"",a\n' + "".join(f"{number},x\n" for number in range(40)))
    by_index = ingest(path, split_by={"key": INDEX})
    assert {name: len(rows) for name, rows in by_index.splits.items()} == {"train": 25, "eval": 15}
    assert all(set(row) == {"a"} for row in by_index.rows)
    named = ingest(path, columns=(INDEX, "a"), split={"all": 1})
    assert named.rows[39] == {INDEX: [39], "a": [b"x"]}
    assert not named.report.tally.has_index


@pytest.mark.parametrize(
    ("header", "end"),
    [("n,s", ","), ("n,s,", ","), ("n,s,", ""), ("n,s,,", ",,"), ("n,s", ",,"), ("n,s,", ",,")],
)
def test_rows_that_end_with_a_delimiter_are_those_without_it(ingest, write, header, end):
    plain = ingest(write("n,s\n" + "".join(f"{row},t{row}\n" for row in range(40)), "plain.csv"))
    ended = ingest(write(f"{header}\n" + "".join(f"{row},t{row}{end}\n" for row in range(40)), "in.csv"))
    assert ended.splits == plain.splits
    assert ended.rejects == []
    assert ended.report.tally.has_empty_end == bool(end)
    assert Tally.from_json(ended.report.tally.to_json()).has_empty_end == bool(end)


@pytest.mark.parametrize(("header", "end"), [("n,s,", ","), ("n,s", ","), ("n,s,", "")])
def test_first_row_that_is_too_short_is_rejected_alone(ingest, write, header, end):
    rows = "".join(f"{row},t{row}{end}\n" for row in range(40))
    found = ingest(write(f"{header}\n7\n{rows}"), split={"all": 1})
    assert [row["n"] for row in found.rows] == [[row] for row in range(40)]
    assert [(each["line"], each["reason"]) for each in found.rejects] == [(2, "too few fields")]
    assert found.report.tally.has_empty_end == bool(end)


def test_value_behind_the_last_column_and_a_missing_field_are_rejected(ingest, write):
    rows = "1,a,\n2,b,c\n3,d\n4\n5,e,,\n"
    found = ingest(write(f"n,s\n{rows}"), split={"all": 1})
    assert found.rows == [{"n": [1], "s": [b"a"]}, {"n": [3], "s": [b"d"]}]
    assert [(each["line"], each["reason"]) for each in found.rejects] == [
        (3, "too many fields"),
        (5, "too few fields"),
        (6, "too many fields"),
    ]


def test_header_alone_gives_no_rows(ingest, write):
    assert ingest(write("a,b\n")).rows == []


@pytest.mark.parametrize(
    ("header", "message"),
    [("a", "lacks 'b'"), ("a,b,c", "lacks 'c'"), ("b,a", "in a different order")],
)
def test_files_with_other_columns_are_refused(ingest, write, header, message):
    write("a,b\n1,2\n", "1.csv")
    path = write(f"{header}\n{','.join('1' for _ in header.split(','))}\n", "2.csv")
    with pytest.raises(FileError, match=message):
        ingest(path.parent / "*.csv")


def test_pattern_without_files_is_named(ingest, tmp_path):
    with pytest.raises(FileError, match=r"nothing-\*\.csv matches no file"):
        ingest(tmp_path / "nothing-*.csv")


def test_progress_tells_rows_and_bytes(ingest, write):
    told = []
    path = write("a\n" + "1\n" * 1000)
    ingest(path, block_bytes=500, progress=lambda rows, done: told.append((rows, done)))
    assert told == sorted(told)
    assert told[-1] == (1000, path.stat().st_size)
    assert len(told) > 3


@given(st.binary(max_size=300), st.sampled_from([5, 64, 10_000]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_any_bytes_are_rows_or_quarantined_or_refused(ingest, write, content, block_bytes):
    try:
        found = ingest(write(b"a,b\n" + content), block_bytes=block_bytes, limits=SourceLimits(row_bytes=100))
    except FileError:
        return
    lines = [line for line in content.split(b"\n") if line.rstrip(b"\r")]
    assert len(found.rows) + len(found.rejects) <= len(lines)
    assert bool(found.rows or found.rejects) == bool(lines)


@pytest.mark.parametrize("block_bytes", [3, 10_000])
def test_byte_order_mark_within_the_file_is_part_of_its_cell(ingest, write, block_bytes):
    content = "\ufeffa,b\n\ufeff1,x\n\ufeff2,\ufeffy\n".encode()
    found = ingest(write(content), split={"all": 1}, block_bytes=block_bytes)
    assert found.rejects == []
    assert [(row["a"], row["b"]) for row in found.rows] == [
        (["\ufeff1".encode()], [b"x"]),
        (["\ufeff2".encode()], ["\ufeffy".encode()]),
    ]


# Ten rows: blocks of 3 and 50 bytes end in them wherever a block can end, and drawing more takes longest.
@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=2), min_size=1, max_size=10), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_what_csv_writes_is_read_back(ingest, write, table, data):
    import csv
    import io

    table = [["s", "t"], *[[cell.replace("\0", "") + "x" for cell in row] for row in table]]
    out = io.StringIO(newline="")
    # Without quotes around it, a lone "\r" is a line end to some and a letter to others.
    quoting = csv.QUOTE_ALL if any("\r" in cell for row in table for cell in row) else csv.QUOTE_MINIMAL
    line_end = data.draw(st.sampled_from(["\n", "\r\n"]))
    csv.writer(out, lineterminator=line_end, quoting=quoting).writerows(table)
    try:
        content = out.getvalue().encode()
    except UnicodeEncodeError:  # lone surrogates
        return
    found = ingest(write(content), split={"all": 1}, block_bytes=data.draw(st.sampled_from([3, 50, 10_000])))
    assert found.rejects == []
    assert [[row["s"], row["t"]] for row in found.rows] == [
        [[a.encode()], [b.encode()]] for a, b in table[1:]
    ]


def test_a_bad_row_in_each_block_does_not_lose_another(ingest, write):
    letters = random.Random(7)  # noqa: S311
    rows = []
    for i in range(3000):
        word = "".join(letters.choices(string.ascii_letters + '",\n é', k=letters.randrange(8)))
        rows.append(f'{i},"{word.replace(chr(34), chr(34) * 2)}"' if i % 100 else f"{i},bad,{i}")
    found = ingest(write("a,b\n" + "\n".join(rows)), split={"all": 1}, block_bytes=2000)
    assert [row["a"][0] for row in found.rows] == [i for i in range(3000) if i % 100]
    assert found.reasons == ["too many fields"] * 30


@pytest.mark.parametrize("before", [0, 10, 500])
@pytest.mark.parametrize("block_bytes", [100, 5000, 1 << 20])
def test_row_above_the_limit_is_one_wherever_it_stands(ingest, write, before, block_bytes):
    rows = "1,2\n" * before
    path = write(f"a,b\n{rows}3,{'x' * 1999}\n4,{'y' * 1998}\n5,6\n")
    found = ingest(path, block_bytes=block_bytes, limits=SourceLimits(row_bytes=2000), split={"all": 1})
    assert [row["a"] for row in found.rows] == [[1]] * before + [[4], [5]]
    assert [(each["line"], each["reason"], each["detail"]) for each in found.rejects] == [
        (before + 2, "longer than the limit", "more than data.limits.row_bytes (2,000)")
    ]


@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
def test_quote_that_closes_behind_the_limit_loses_no_line(ingest, write, block_bytes):
    lines = "".join(f"{number},2\n" for number in range(1000))
    path = write(f'a,b\n7,"x\n{lines}8,y"\n9,9\n')
    found = ingest(path, block_bytes=block_bytes, limits=SourceLimits(row_bytes=2000), split={"all": 1})
    assert found.rows[-1]["a"] == [9]
    assert len(found.rows) + len(found.rejects) == 1003
