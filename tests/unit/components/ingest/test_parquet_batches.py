"""Parquet files that are small and stand for much: read in bounded pieces, or refused in words."""

from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.ingest import parquet_table
from slipway.components.ingest.blocks import FileError, FilePart, InputFile
from slipway.components.ingest.options import Options
from slipway.components.ingest.source_limits import SourceLimits

MEBIBYTE = 1 << 20
ALL = {"format": "parquet", "split": {"all": 1}}
SMALL = SourceLimits(decoded_bytes=MEBIBYTE)


@pytest.fixture
def parquet(tmp_path):
    def written(columns, **options):
        path = tmp_path / "in.parquet"
        pq.write_table(pa.table(columns), path, **{"compression": "zstd", "store_schema": False, **options})
        return path

    return written


def repeated(text, times):
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array([text]))


def blocks(path, **options):
    file, options = InputFile(str(path), path), Options(format="parquet", **options)
    return parquet_table.read(file, options, parquet_table.infer(file, options, {}))


def test_text_that_is_kept_once_is_unpacked_for_a_few_rows_at_a_time(parquet):
    text = "x" * MEBIBYTE
    path = parquet({"t": repeated(text, 60), "n": list(range(60))})
    assert path.stat().st_size < 5_000
    before, numbers = pa.total_allocated_bytes(), []
    for block in blocks(path):
        numbers += block.columns["n"].to_pylist()
        assert block.columns["t"][0].as_py() == text.encode()
        assert block.columns["t"].nbytes <= 5 * MEBIBYTE
        assert pa.total_allocated_bytes() - before < 20 * MEBIBYTE
    assert numbers == list(range(60))


def test_text_that_each_row_shares_the_begin_of_is_unpacked_for_a_few_rows_at_a_time(parquet):
    path = parquet(
        {"t": ["x" * MEBIBYTE] * 40}, use_dictionary=False, column_encoding={"t": "DELTA_BYTE_ARRAY"}
    )
    assert path.stat().st_size < 5_000
    found = list(blocks(path, limits=SourceLimits(decoded_bytes=8 * MEBIBYTE)))
    assert sum(block.rows for block in found) == 40
    assert max(block.columns["t"].nbytes for block in found) <= 9 * MEBIBYTE


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"t": pa.array(["x" * 2 * MEBIBYTE])}, {"use_dictionary": False}),
        ({"t": repeated("x" * 2 * MEBIBYTE, 5)}, {}),
        ({"t": pa.array([np.zeros(MEBIBYTE, np.int8)])}, {}),
        ({"t": pa.array([b"x" * 2 * MEBIBYTE], pa.binary(2 * MEBIBYTE))}, {}),
    ],
)
def test_column_that_takes_more_than_the_limit_unpacked_is_refused_by_name(ingest, parquet, columns, options):
    path = parquet(columns, **options)
    with pytest.raises(FileError, match=r"in\.parquet: column 't' takes \d,\d+,\d+ bytes unpacked") as caught:
        ingest(path, limits=SMALL, **ALL)
    assert "more than data.limits.decoded_bytes (1,048,576)" in caught.value.message
    assert "raise data.limits.decoded_bytes" in caught.value.hint
    assert len(ingest(path, limits=SourceLimits(decoded_bytes=64 * MEBIBYTE), **ALL).rows) > 0


def test_row_group_that_is_large_and_hardly_packed_is_read(ingest, parquet):
    texts = np.random.default_rng(1).bytes(4 * MEBIBYTE)
    path = parquet({"t": [texts[start : start + 1024] for start in range(0, len(texts), 1024)]})
    assert len(ingest(path, limits=SMALL, **ALL).rows) == 4096


def test_row_that_takes_more_than_the_limit_unpacked_is_quarantined(ingest, parquet):
    texts = pa.DictionaryArray.from_arrays(
        pa.array([1, *[0] * 200, 1, 1], pa.int32()), pa.array(["x" * 9000, "y"])
    )
    path = parquet({"t": pa.ListArray.from_arrays(pa.array([0, 1, 201, 202, 203], pa.int32()), texts)})
    found = ingest(path, limits=SMALL, **ALL)
    assert [row["t"] for row in found.rows] == [[b"y"]] * 3
    assert [(each["offset"], each["reason"], each["detail"]) for each in found.rejects] == [
        (
            1,
            "larger than the limit",
            "1,800,000 bytes unpacked, more than data.limits.decoded_bytes (1,048,576)",
        )
    ]


def test_many_columns_of_equal_numbers_are_read_some_rows_at_a_time(parquet):
    path = parquet({f"c{index}": np.zeros(20_000) for index in range(200)})
    found = list(blocks(path))
    assert sum(block.rows for block in found) == 20_000
    assert max(sum(values.nbytes for values in block.columns.values()) for block in found) <= 20 * MEBIBYTE


def test_page_with_a_wrong_checksum_is_refused(ingest, parquet):
    path = parquet(
        {"t": ["abcdefgh"] * 9},
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
    )
    assert len(ingest(path, **ALL).rows) == 9
    path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"abcdefgi", 1))
    with pytest.raises(FileError, match=r"is not a readable Parquet file: .*CRC"):
        ingest(path, **ALL)


def test_more_columns_than_the_limit_are_refused(ingest, parquet):
    path = parquet({name: [1] for name in "abcd"})
    with pytest.raises(FileError, match=r"has 4 columns, more than data\.limits\.columns \(3\)"):
        ingest(path, limits=SourceLimits(columns=3), **ALL)
    assert ingest(path, limits=SourceLimits(columns=3), columns=("a", "b"), **ALL).rows == [
        {"a": [1], "b": [1]}
    ]


def test_want_of_memory_is_reported_as_such(ingest, parquet, monkeypatch):
    path = parquet({"t": ["x"]})

    def fails(*_, **__):
        raise pa.ArrowMemoryError("malloc of size 4294967296 failed")

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", fails)
    with pytest.raises(FileError, match=r"this machine ran out of memory while it read .*in\.parquet"):
        ingest(path, **ALL)


@pytest.mark.parametrize("block_bytes", [160, MEBIBYTE])
@pytest.mark.parametrize("group", [None, 1], ids=["the whole", "a part of the file"])
def test_column_that_lacks_values_is_refused_instead_of_moving_up(parquet, block_bytes, group):
    path = parquet(
        {"a": list(range(40)), "b": [number / 2 for number in range(40)]},
        row_group_size=10,
        use_dictionary=False,
        compression="none",
    )
    page = pq.ParquetFile(path).metadata.row_group(1).column(1).data_page_offset
    damaged = bytearray(path.read_bytes())
    assert damaged[page : page + 2] == b"\x15\x00", "the page's header begins with its kind: a data page"
    damaged[page + 1] = 2  # a page of another kind, which readers skip
    path.write_bytes(damaged)
    part = None if group is None else FilePart(0, 160, rows=10, groups=range(group, group + 1))
    options = Options(format="parquet", block_bytes=block_bytes)
    file = InputFile(str(path), path, part=part)
    with pytest.raises(FileError, match=r"in\.parquet is not a readable Parquet file"):
        list(parquet_table.read(file, options, parquet_table.infer(file, options, {})))


@pytest.mark.parametrize(
    "items", [list(range(96)), [f"t{number % 9}" for number in range(96)]], ids=["numbers", "texts"]
)
@pytest.mark.parametrize("store_schema", [True, False])
def test_lists_of_several_row_groups_are_read(parquet, items, store_schema):
    lists = [items[2 * row : 2 * row + row % 3] for row in range(47)] + [None]
    path = parquet({"l": lists}, row_group_size=16, store_schema=store_schema)
    found = [row for block in blocks(path) for row in block.columns["l"].to_pylist()]
    expected = [
        [str(item).encode() if isinstance(item, str) else item for item in row or []] for row in lists
    ]
    assert found == expected


@pytest.mark.parametrize("byte", [0x8A, 0xAB], ids=["one row more", "one row less"])
def test_list_that_is_divided_wrongly_is_refused_instead_of_moving_the_rows_after_it(parquet, byte):
    lists = [[2 * row, 2 * row + 1] for row in range(48)]
    path = parquet({"l": lists}, row_group_size=16, use_dictionary=False, compression="none")
    levels = b"\x09" + b"\xaa" * 4  # of a row group: 32 values, of which every other one begins a row
    assert path.read_bytes().count(levels) == 3
    path.write_bytes(path.read_bytes().replace(levels, levels[:2] + bytes([byte]) + levels[3:], 1))
    with pytest.raises(FileError, match=r"in\.parquet is not a readable Parquet file.*: its metadata counts"):
        list(blocks(path))


IDS = [UUID(int=number) for number in (5, 2**127 + 1, 7 * 10**37)]


def _marked_by_arrow(path, rows):
    """As pyarrow notes its own type in the file."""

    def of(values):
        stored = pa.array([each and each.bytes for each in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(pa.uuid(), stored)

    ids, offsets = of(rows), pa.array(range(len(rows) + 1), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, of([each or IDS[0] for each in rows]))
    pq.write_table(pa.table({"s": [{"a": 1, "b": b"x" * 16}] * len(rows), "id": ids, "ids": lists}), path)


def _marked_by_parquet(path, rows):
    """As DuckDB, Spark and other programs write them."""
    import duckdb

    texts = [None if each is None else str(each) for each in rows]
    table = pa.table({"n": range(len(rows)), "id": pa.array(texts, pa.string())})
    with duckdb.connect() as session:
        session.register("t", table)
        rows = session.sql(
            "select {'a': 1, 'b': id} s, id::uuid id, [coalesce(id, $first)::uuid] ids from t order by n",
            params={"first": str(IDS[0])},
        )
        rows.write_parquet(str(path))


@pytest.mark.parametrize("write", [_marked_by_arrow, _marked_by_parquet])
def test_uuids_are_text_in_small_letters(tmp_path, write):
    path = tmp_path / "in.parquet"
    write(path, [*IDS, None])
    found = list(blocks(path, columns=("id", "ids")))
    wanted = [str(each).encode() for each in IDS]
    assert [each for block in found for each in block.columns["id"].to_pylist()] == [*wanted, None]
    lists = [each for block in found for each in block.columns["ids"].to_pylist()]
    assert lists == [[each] for each in (*wanted, wanted[0])]


def test_sixteen_bytes_that_are_no_uuid_stay_bytes(parquet):
    path = parquet({"id": pa.array([IDS[0].bytes], pa.binary(16))})
    [block] = blocks(path)
    assert block.columns["id"].to_pylist() == [IDS[0].bytes]


def test_file_of_uuids_without_a_row_has_none(tmp_path):
    _marked_by_arrow(tmp_path / "in.parquet", [])
    assert sum(block.rows for block in blocks(tmp_path / "in.parquet", columns=("id",))) == 0
