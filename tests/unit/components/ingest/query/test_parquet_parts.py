"""A stream of rows as Parquet files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.ingest.query import parquet_parts
from slipway.components.ingest.query.parquet_parts import write_parts

SCHEMA = pa.schema({"id": pa.int64(), "note": pa.string()})


def batches(*counts):
    for count in counts:
        yield pa.record_batch([list(range(count)), ["x"] * count], schema=SCHEMA)


def test_a_file_is_followed_by_another_once_it_is_large(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_parts, "_PART_BYTES", 3_000)
    rows, parts = write_parts(SCHEMA, batches(200, 200, 1), tmp_path)
    assert rows == 401
    assert [part.name for part in parts] == ["part-00000.parquet", "part-00001.parquet"]
    assert [pq.read_metadata(part).num_rows for part in parts] == [400, 1]


def test_without_rows_there_is_a_file_with_the_columns(tmp_path):
    rows, [part] = write_parts(SCHEMA, batches(), tmp_path)
    assert (rows, pq.read_table(part).schema.names) == (0, ["id", "note"])


def test_what_parquet_cannot_hold_is_an_error(tmp_path):
    with pytest.raises(pa.ArrowException):
        write_parts(pa.schema({"gap": pa.month_day_nano_interval()}), iter(()), tmp_path)
