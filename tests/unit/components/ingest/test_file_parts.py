"""Large files in parts: the rows, their order, their splits and what is wrong with them stay the same."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.components.errors import SlipwayError
from slipway.components.ingest import csv_table, file_parts, local_ingest, planning
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.csv_table import infer
from slipway.components.ingest.file_parts import divided
from slipway.components.ingest.options import Options
from slipway.components.ingest.planning import plan_tasks
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.ingest.storage import StoredFile, fetched, list_files
from slipway.components.ingest.typed_rows import row_numbers

BLOCK_BYTES = 400
FROM_FIXTURES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
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
    """Divides files from some bytes on, and converts each part by itself."""

    def small(part_bytes=1_000):
        monkeypatch.setattr(file_parts, "PART_BYTES", part_bytes)
        monkeypatch.setattr(planning, "TASK_BYTES", 1)

    return small


def seen(found):
    """Return what an ingest of a file has found, in order."""
    return found.splits, found.rejects, found.report.tally.to_json(), found.report.digests


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


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("small.csv", PLAIN[:1_500], {}),
        ("trips.csv", PLAIN.replace(b"name 3\n", b'na"me" 3\n'), {}),
        ("trips.csv", PLAIN.decode().encode("utf-16"), {"encoding": "utf-16"}),
        ("trips.tfrecord", PLAIN, {"format": "tfrecord"}),
        ("trips.csv", PLAIN.replace(b"name 3\n", b"name" * 200 + b"\n", 1), {"limits": {"row_bytes": 500}}),
        (
            "trips.jsonl",
            b'{"number": 1}\n' * 400 + b'{"name": "%s"}\n' % (b"x" * 489),
            {"format": "jsonl", "limits": {"row_bytes": 500}},
        ),
        ("trips.csv", QUOTED.replace(b"two lines", b"two lines" * 10, 1), {"limits": {"row_bytes": 100}}),
    ],
    ids=[
        "small",
        "irregular quotes",
        "another encoding",
        "another format",
        "a long line",
        "a long line of JSON",
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
    with fetched(tasks[1].files[0]) as part:
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
def test_any_csv_is_read_in_parts_as_a_whole(lines, line_end, by_row, row_bytes):
    limits = replace(SourceLimits(), row_bytes=row_bytes)
    options = Options(block_bytes=20, split_by={"row": True} if by_row else {}, limits=limits)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        path = Path(folder, "trips.csv")
        path.write_bytes(line_end.join(["number,name", *lines]).encode())
        patched.setattr(file_parts, "PART_BYTES", 30)
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


VALUES = st.sampled_from(
    [
        1,
        -7,
        2.5,
        1e300,
        2**63,
        True,
        None,
        "",
        "1",
        "x",
        "long text",
        [],
        [1],
        [2.5, "y"],
        [None],
        {"deep": 1},
    ]
)
OBJECTS = st.dictionaries(st.sampled_from(["number", "name", "rare"]), VALUES, max_size=3).map(json.dumps)
ODD_LINES = st.sampled_from(["", " ", "\t \r", "\ufeff", "[1]", '{"a": 1', '{"name": "\\ud800"}', " 5", "{}"])
CHOICES = [{}, {"columns": ("number", "name")}, {"columns": ("rare",)}, {"types": {"number": "float"}}]
ROW_BY_ROW = {"split_by": {"row": True}}


@given(
    lines=st.lists(OBJECTS | OBJECTS | ODD_LINES, min_size=8, max_size=25),
    ends=st.sampled_from(["\n", "\r\n"]),
    begin=st.sampled_from(["", "\ufeff"]),
    choice=st.sampled_from([*CHOICES, ROW_BY_ROW, {"split_by": {"key": "name"}}]),
    row_bytes=st.sampled_from([1_000, 80, 40]),
)
@FROM_FIXTURES
def test_any_json_lines_are_ingested_in_parts_as_a_whole(
    ingest, write, lines, ends, begin, choice, row_bytes
):
    path = write((begin + ends.join(lines)).encode(), "rows.jsonl")
    limits = replace(SourceLimits(), row_bytes=row_bytes)
    check_parts(ingest, path, format="jsonl", block_bytes=20, limits=limits, **choice)


TEXTS = st.sampled_from([b"", b"a", b"b", b"\xff", b"x" * 60])
ROWS = st.fixed_dictionaries(
    {
        "number": st.none() | st.integers(-9, 9),
        "size": st.none() | st.sampled_from([0.5, 1e300]),
        "name": st.none() | TEXTS,
        "items": st.none() | st.lists(st.none() | st.integers(0, 3), max_size=3),
    }
)
SCHEMA = pa.schema(
    {"number": pa.int64(), "size": pa.float64(), "name": pa.binary(), "items": pa.list_(pa.int64())}
)


@given(
    groups=st.lists(st.lists(ROWS, max_size=6), min_size=2, max_size=8),
    choice=st.sampled_from([{}, {"columns": ("number", "items")}, ROW_BY_ROW, {"types": {"name": "text"}}]),
    decoded_bytes=st.sampled_from([1 << 20, 50]),
)
@FROM_FIXTURES
def test_any_parquet_is_ingested_in_parts_as_a_whole(ingest, tmp_path, groups, choice, decoded_bytes):
    path = tmp_path / "rows.parquet"
    with pq.ParquetWriter(path, SCHEMA) as writer:
        for rows in groups:
            writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
    limits = replace(SourceLimits(), decoded_bytes=decoded_bytes)
    check_parts(ingest, path, format="parquet", block_bytes=100, limits=limits, **choice)


def check_parts(ingest, path, **options):
    """Check that a file in parts gives what the whole gives: rows, quarantine, counts, digest or error."""

    def outcome():
        try:
            return seen(ingest(path, **options))
        except SlipwayError as error:
            return error.message, error.hint

    whole = outcome()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(file_parts, "PART_BYTES", 30)
        patched.setattr(planning, "TASK_BYTES", 1)
        assert outcome() == whole


def test_keys_that_only_some_parts_have_are_looked_for_in_all(ingest, write, in_parts):
    lines = [b'{"number": %d}\n' % number for number in range(200)]
    path = write(b"not yet\n" * 200 + b"".join(lines) + b'{"rare": 1}\n', "rows.jsonl")
    options = {"format": "jsonl", "block_bytes": 100, "columns": ("rare",)}
    whole = ingest(path, **options)
    in_parts(200)
    assert seen(ingest(path, **options)) == seen(whole)
    with pytest.raises(SlipwayError, match="has no column 'rarer'"):
        ingest(path, **{**options, "columns": ("rare", "rarer")})


def write_groups(path, groups, rows=1_000):
    """Write a file of two columns of eight bytes each, of which most repeat."""
    table = pa.table({"number": pa.array(range(groups * rows)), "fare": [0.5] * (groups * rows)})
    pq.write_table(table, path, row_group_size=rows, use_dictionary=["fare"])
    return list_files(str(path))


def test_parts_of_parquet_are_row_groups_measured_unpacked(tmp_path, in_parts):
    in_parts(30_000)
    path = tmp_path / "rows.parquet"
    files = write_groups(path, groups=5)
    parts = [each.part for each in divided(files, Options(format="parquet"))]
    groups = [(part.groups, part.rows) for part in parts]
    assert groups == [(range(2), 0), (range(2, 4), 2_000), (range(4, 5), 4_000)]
    assert [part.begin for part in parts] == [0, *(part.end for part in parts[:-1])]
    headers = 100  # at most, of the pages of a row group
    for part in parts:
        assert 0 <= part.size_bytes - len(part.groups) * 16_000 < len(part.groups) * headers
    assert path.stat().st_size < parts[-1].end * 0.7
    only = Options(format="parquet", columns=("number",))
    assert divided(files, only) == files, "of this column there is less than two parts"


@pytest.mark.parametrize("groups", [1, 3], ids=["one row group", "less than two parts"])
def test_parquet_that_cannot_be_shared_stays_whole(tmp_path, in_parts, groups):
    in_parts(8_000 if groups == 1 else 30_000)
    files = write_groups(tmp_path / "rows.parquet", groups)
    assert divided(files, Options(format="parquet")) == files


def test_small_parquet_is_not_opened(tmp_path, in_parts):
    in_parts()
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"damaged" * 20)
    files = list_files(str(path))
    assert divided(files, Options(format="parquet")) == files
    path.write_bytes(b"damaged" * 50)
    with pytest.raises(FileError, match="is not a readable Parquet file"):
        divided(list_files(str(path)), Options(format="parquet"))


def test_objects_stay_whole(in_parts):
    in_parts()
    files = [StoredFile("gs://bucket/rows.jsonl", 1 << 30)]
    assert divided(files, Options(format="jsonl")) == files


def test_a_file_has_at_most_so_many_parts(write, in_parts, monkeypatch):
    in_parts(10)
    monkeypatch.setattr(file_parts, "MOST_PARTS", 4)
    path = write(b'{"number": 12345}\n' * 400, "rows.jsonl")
    assert len(divided(list_files(str(path)), Options(format="jsonl", block_bytes=100))) == 4


def test_progress_of_parts_adds_up_to_their_size(tmp_path, ingest, in_parts):
    in_parts(16_000)
    path = tmp_path / "rows.parquet"
    files = write_groups(path, groups=4)
    sizes = [each.part.size_bytes for each in divided(files, Options(format="parquet"))]
    told = []
    ingest(path, format="parquet", block_bytes=4_000, progress=lambda rows, done: told.append((rows, done)))
    assert [done for rows, done in told if rows == 1_000] == sizes
    assert len(sizes) == 4 < len(told)
