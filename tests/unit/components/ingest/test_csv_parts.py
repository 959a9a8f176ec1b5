"""Large CSV files in parts: the rows, their splits and what is wrong with them stay the same."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.components.ingest import csv_parts, csv_table, local_ingest
from slipway.components.ingest.csv_parts import divided
from slipway.components.ingest.csv_table import infer
from slipway.components.ingest.options import Options
from slipway.components.ingest.planning import plan_tasks
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.ingest.storage import fetched, list_files
from slipway.components.ingest.typed_rows import row_numbers

BLOCK_BYTES = 400
HEAD = b"number,fare,name\n"
LINES = [b"%d,%d.5,name %d\n" % (number, number % 7, number % 11) for number in range(400)]
PLAIN = HEAD + b"".join(LINES)
QUOTED = HEAD + b"".join(b'%d,1.5,"a ""name"", %d\nin two lines"\n' % (n, n % 11) for n in range(400))
WITH_FAULTS = (
    HEAD
    + b"".join(LINES[:100])
    + b"\n\n100,much,name\n101,2.5\n"
    + HEAD
    + b"".join(LINES[102:250])
    + b"250,1.5,one,two\n251,\xff,name\n"
    + b"".join(LINES[252:]).replace(b"\n", b"\r\n")
    + b"400,7.5,no line end"
)


@pytest.fixture
def in_parts(monkeypatch):
    """Divides files from some hundred bytes on."""

    def small():
        monkeypatch.setattr(csv_parts, "PART_BYTES", 1_000)

    return small


def seen(found):
    """Return what an ingest of a file has found, apart from the order of rows in different files."""
    rows = {split: sorted(map(repr, rows)) for split, rows in found.splits.items()}
    rejects = found.rejects
    return rows, rejects, found.report.tally.to_json(), found.report.digests


@pytest.mark.parametrize("split_by", [{}, {"row": True}, {"key": "name"}], ids=["hash", "row", "key"])
@pytest.mark.parametrize("content", [PLAIN, QUOTED, WITH_FAULTS], ids=["plain", "quoted", "with faults"])
def test_parts_give_the_rows_of_the_whole(write, ingest, in_parts, content, split_by):
    path = write(content, "trips.csv")
    settings = {"block_bytes": BLOCK_BYTES, "split_by": split_by, "max_bad_share": 1.0, "inferred_blocks": 0}
    whole = ingest(path, **settings)
    in_parts()
    parts = divided(list_files(str(path)), Options(**settings))
    is_divided = not split_by.get("row") or content == PLAIN
    assert (len(parts) > 3) == is_divided, "rows with faults or line breaks are numbered as a whole"
    found = ingest(path, **settings)
    assert seen(found) == seen(whole)


def test_parts_are_whole_rows_that_follow_each_other(write, in_parts):
    in_parts()
    path = write(PLAIN, "trips.csv")
    [first, *others] = [
        each.part for each in divided(list_files(str(path)), Options(block_bytes=BLOCK_BYTES))
    ]
    assert (first.begin, first.line, first.rows) == (0, 1, 0)
    assert others[-1].end == len(PLAIN)
    for before, part in zip([first, *others], others, strict=False):
        assert part.begin == before.end
        assert before.size_bytes >= 1_000
        number = int(PLAIN[part.begin :].split(b",")[0])
        assert (part.line, part.rows) == (number + 2, number)


def test_without_a_header_the_first_line_is_a_row(write, in_parts):
    in_parts()
    options = Options(block_bytes=BLOCK_BYTES, column_names=("number", "fare", "name"))
    [_, second, *_] = divided(list_files(str(write(b"".join(LINES), "trips.csv"))), options)
    assert second.part.rows == second.part.line - 1


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("small.csv", PLAIN[:1_500], {}),
        ("trips.csv", PLAIN.replace(b"name 3\n", b'na"me" 3\n'), {}),
        ("trips.csv", PLAIN.decode().encode("utf-16"), {"encoding": "utf-16"}),
        ("trips.jsonl", b'{"number": 1}\n' * 400, {"format": "jsonl"}),
        ("trips.csv", PLAIN.replace(b"name 3\n", b"name" * 200 + b"\n", 1), {"limits": {"row_bytes": 500}}),
        ("trips.csv", QUOTED.replace(b"two lines", b"two lines" * 10, 1), {"limits": {"row_bytes": 100}}),
    ],
    ids=[
        "small",
        "irregular quotes",
        "another encoding",
        "another format",
        "a long line",
        "a long row of two lines",
    ],
)
def test_other_files_stay_whole(write, in_parts, name, content, options):
    in_parts()
    files = list_files(str(write(content, name)))
    assert (
        divided(files, Options.from_json({**Options(block_bytes=BLOCK_BYTES).to_json(), **options})) == files
    )


def test_compressed_files_stay_whole(write, in_parts):
    in_parts()
    files = list_files(str(write(PLAIN, "trips.csv.gz")))
    assert divided(files, Options(block_bytes=BLOCK_BYTES)) == files


def test_types_are_guessed_from_the_first_rows_and_put_right_from_all_parts(write, tmp_path, in_parts):
    in_parts()
    path = write(PLAIN.replace(b"\n399,", b"\nlast,"), "trips.csv")
    options = Options(block_bytes=BLOCK_BYTES)
    folder = tmp_path / "train"
    folder.mkdir()
    tasks = plan_tasks(
        {None: divided(list_files(str(path)), options)},
        {"train": str(folder), "eval": str(folder)},
        quarantine=str(tmp_path),
        min_shards=1,
    )
    with fetched(tasks[0].files[1]) as part:
        guess = Options(block_bytes=BLOCK_BYTES, inferred_blocks=1)
        assert {kind.name for kind in infer(part, guess, {}).values()} == {"UNKNOWN"}
    cleared = []
    report = local_ingest.run_tasks(tasks, options, {}, workers=1, clear=lambda: cleared.append(True))
    assert cleared == [True]
    assert report.tally.rows_in == 400


def files_of(cells):
    """Return the lines of files with such cells."""
    return st.lists(st.lists(cells, min_size=1, max_size=3).map(",".join), min_size=3, max_size=30)


REGULAR = st.sampled_from(["1", "b", "", '"a"', '"a\n1"', '"a""1"', "longer"])
FILES = files_of(REGULAR) | files_of(REGULAR | st.text('ab1,"\r\n', max_size=4))


@given(FILES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from([1_000, 40, 20, 12]))
def test_any_file_is_read_in_parts_as_a_whole(lines, line_end, by_row, row_bytes):
    limits = replace(SourceLimits(), row_bytes=row_bytes)
    options = Options(block_bytes=20, split_by={"row": True} if by_row else {}, limits=limits)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        path = Path(folder, "trips.csv")
        path.write_bytes(line_end.join(["number,name", *lines]).encode())
        patched.setattr(csv_parts, "PART_BYTES", 30)
        [file] = list_files(str(path))
        parts = divided([file], options)
        assert sorted(read(parts, options)) == sorted(read([file], options))


def read(files, options):
    """Yield each row of some files: its offset, line, cells or fault, and its number where that matters."""
    for stored in files:
        with fetched(stored) as file:
            first = stored.part.rows if stored.part else 0
            columns = infer(file, options, {})
            for block in csv_table.read(file, options, columns):
                numbers = row_numbers(block, first)[0].tolist() if options.split_by else [0] * block.rows
                cells = zip(*(column.to_pylist() for column in block.columns.values()), strict=True)
                for row, each in enumerate(cells):
                    place = block.find(row)
                    yield place.offset, place.line, str(each), numbers[row]
                for reject in block.rejects:
                    yield reject.place.offset, reject.place.line, reject.reason, 0
                first += block.rows + len(block.rejects)
