"""Tables as relations that DuckDB scans."""

import gzip
import sqlite3
import struct

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import zstandard

from slipway.components.ingest.query.file_views import Files
from slipway.components.ingest.query.relations import of_files, open_table
from slipway.components.ingest.query.tables import QueryError, Table


def table(place):
    return Table(name="t", kind="files", place=str(place))


def test_files_are_known_by_their_digests(tmp_path):
    opened = open_table(table("a.csv"), place=tmp_path, files=[tmp_path / "a.csv"], digests={"a.csv": "12"})
    assert opened.identity == {"files": {"a.csv": "12"}, "folders": False}
    divided = open_table(table("day=*/a.csv"), place=tmp_path, files=[], digests={"a.csv": "12"})
    assert divided.identity != opened.identity, "of the same files, folders may be columns"
    assert opened.relation(tmp_path / "copy") == Files("csv", [tmp_path / "a.csv"])


def test_rows_of_sqlite_are_copied_and_known_by_query_and_digest(tmp_path):
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE orders AS SELECT 7 AS id")
    database.close()
    asked = Table(name="t", kind="sqlite", place="shop.db", query="SELECT id FROM orders")
    opened = open_table(asked, place=tmp_path, files=[path], digests={"shop.db": "12"})
    assert opened.identity == {"query": "SELECT id FROM orders", "files": {"shop.db": "12"}}
    [part] = opened.relation(tmp_path / "copy").paths
    assert pq.read_table(part).to_pylist() == [{"id": 7}]


def test_a_server_without_a_state_is_known_by_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_URL", "postgresql://u:p@127.0.0.1:1/shop")
    asked = Table(name="t", kind="database_env", place="SHOP_URL", query="SELECT 1")
    opened = open_table(asked, place=tmp_path, files=[], digests={})
    assert opened.identity is None
    with pytest.raises(QueryError, match="refused"):
        opened.relation(tmp_path / "copy")


def test_files_are_scanned_by_duckdb(tmp_path):
    path = tmp_path / "a.parquet"
    assert of_files(table("a.parquet"), [path]) == Files("parquet", [path])
    assert of_files(table("day=*/a.parquet"), [path]) == Files("parquet", [path], is_hive=True)


def test_files_of_arrow_are_a_data_set(tmp_path):
    paths = [tmp_path / "a.arrow", tmp_path / "b.arrow"]
    for path in paths:
        feather.write_feather(pa.table({"id": [1, 2]}), path, compression="zstd")
    assert of_files(table("*.arrow"), paths).count_rows() == 4


@pytest.mark.parametrize("other", [{"id": [2.5]}, {"id": [1], "more": [2]}, {"no": [1]}])
def test_files_of_arrow_with_other_columns_are_refused(tmp_path, other):
    paths = [tmp_path / "a.arrow", tmp_path / "b.arrow"]
    for path, rows in zip(paths, ({"id": [1]}, other), strict=True):
        feather.write_feather(pa.table(rows), path)
    with pytest.raises(QueryError, match=r"data\.tables\.t: b\.arrow and a\.arrow differ in their columns"):
        of_files(table("*.arrow"), paths)


def test_what_is_no_file_of_arrow_is_refused(tmp_path):
    path = tmp_path / "a.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, pa.schema({"id": pa.int64()})) as stream:
        stream.write_batch(pa.record_batch({"id": [1]}))
    with pytest.raises(QueryError, match=r"data\.tables\.t: a\.arrow is damaged, or not an Arrow IPC file"):
        of_files(table(path), [path])


@pytest.mark.parametrize(
    ("column", "right", "wrong"),
    [
        (pa.array(["aaaa", "bbbb"]), (0, 4, 8), (0, 4, 1 << 20)),
        (pa.array([[5], [6, 7]]), (0, 1, 3), (0, 1, 1 << 20)),
        (pa.array(["a", "b", "b", "a"]).dictionary_encode(), (0, 1, 1, 0), (0, 1, 1 << 20, 0)),
    ],
    ids=["a text's end", "a list's end", "an index"],
)
def test_file_of_arrow_that_points_outside_of_itself_is_refused(tmp_path, column, right, wrong):
    path = tmp_path / "a.arrow"
    feather.write_feather(pa.table({"t": column}), path, compression="uncompressed")
    content, right, wrong = (
        path.read_bytes(),
        struct.pack(f"<{len(right)}i", *right),
        struct.pack(f"<{len(wrong)}i", *wrong),
    )
    assert content.count(right) == 1
    path.write_bytes(content.replace(right, wrong))
    with pytest.raises(QueryError, match=r"data\.tables\.t: a\.arrow is damaged"):
        of_files(table(path), [path])


def test_file_of_arrow_with_two_columns_of_one_name_is_refused(tmp_path):
    path = tmp_path / "a.arrow"
    schema = pa.schema([("id", pa.int64()), ("id", pa.int64())])
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(pa.record_batch([[1], [2]], schema=schema))
    with pytest.raises(QueryError, match=r"data\.tables\.t: a\.arrow has two columns 'id'"):
        of_files(table(path), [path])


ROWS = "id,text\n" + "".join(f"{row},{row * 7919 % 10007}\n" for row in range(20_000))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_file_that_is_cut_short_is_refused_and_not_one_of_fewer_rows(tmp_path, ask, suffix):
    whole = {".gz": gzip.compress, ".zst": zstandard.compress}[suffix](ROWS.encode())
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(whole)
    assert len(ask("SELECT * FROM t", t=of_files(table(path), [path]))[1]) == 20_000

    for end in (0, 1, len(whole) // 3, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(QueryError, match=r"^data\.tables\.t: a\.csv\.\w+ is (cut|damaged|not compr)"):
            of_files(table(path), [path])


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_compressed_csv_of_0_bytes_is_refused_and_not_a_table_without_rows(tmp_path, compress):
    """As one that is left by a failed `mysqldump | gzip`."""
    path = tmp_path / ("a.csv.gz" if compress is gzip.compress else "a.csv.zst")
    path.write_bytes(compress(b""))
    with pytest.raises(QueryError, match=r"^data\.tables\.t: a\.csv\.\w+ is empty"):
        of_files(table(path), [path])


def test_gzip_whose_rows_differ_from_its_checksum_is_refused(tmp_path):
    whole = gzip.compress(ROWS.encode(), compresslevel=0)  # stored as it is: only the checksum tells
    path = tmp_path / "a.csv.gz"
    path.write_bytes(whole.replace(b"\n777,", b"\n778,", 1))

    with pytest.raises(QueryError, match=r"a\.csv\.gz is damaged") as caught:
        of_files(table(path), [path])
    assert caught.value.hint == "copy it again, or take it out of data.source"
