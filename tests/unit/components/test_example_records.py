"""The records of files of examples, put together from pieces; the tests of statistics read whole files."""

import gzip
import importlib.util
import sys
import zlib
from types import MappingProxyType

import pytest
import zstandard

from slipway.components import example_records
from slipway.components.errors import ComponentError
from slipway.components.example_records import first_records, in_pieces, records
from slipway.components.ingest.tfrecord import frame


def test_long_record_is_put_together_once(tmp_path, monkeypatch):
    path = tmp_path / "rows.gz"
    long = bytes(range(256)) * 40_000
    path.write_bytes(gzip.compress(frame([b"short", long, b"short"])))
    monkeypatch.setattr(example_records, "_INFLATED_BYTES", 1_000)
    asked = []
    split = example_records._split
    monkeypatch.setattr(example_records, "_split", lambda data: asked.append(len(data)) or split(data))
    found = [record for some in records(str(path)) for record in some]
    assert found == [b"short", long, b"short"]
    assert sum(asked) < 2 * len(long), "10,000 pieces, each copied a few times at most"


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
def test_records_come_so_many_at_a_time(rows):
    lists = [[b"a"], [], [b"b", b"c", b"d", b"e", b"f", b"g"], [b"h"]]
    found = list(in_pieces(lists, rows))
    assert b"".join(record for each in found for record in each) == b"abcdefgh"
    assert {len(each) for each in found[:-1]} <= {rows}
    assert 1 <= len(found[-1]) <= rows


def test_the_first_are_as_many_as_there_are(tmp_path):
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(frame([b"a", b"b"])))
    assert first_records(str(path), 1) == [b"a"]
    assert first_records(str(path), 9) == [b"a", b"b"]


def test_file_of_something_else_is_refused_before_all_of_it_is_in_memory(tmp_path, monkeypatch):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"not a file of records\n" * 10_000))
    monkeypatch.setattr(example_records, "_INFLATED_BYTES", 1_000)
    asked = []
    split = example_records._split
    monkeypatch.setattr(example_records, "_split", lambda data: asked.append(data) or split(data))
    with pytest.raises(ComponentError, match=r"text\.gz cannot be read: a record of [0-9,]+ bytes is none"):
        list(records(str(path)))
    assert len(asked) == 1


def test_the_first_are_found_without_reading_the_others(tmp_path, monkeypatch):
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(frame([b"%09d" % number for number in range(100_000)])))
    found = []
    split = example_records._split
    monkeypatch.setattr(example_records, "_split", lambda data: found.append(len(data)) or split(data))
    assert first_records(str(path), 2) == [b"000000000", b"000000001"]
    assert sum(found) < 100_000, "of 2.5 MB"


def test_zlib_reads_the_same_where_isal_is_missing(tmp_path, monkeypatch):
    for name in ("isal", "isal.isal_zlib"):
        monkeypatch.setitem(sys.modules, name, None)
    spec = importlib.util.spec_from_file_location("without_isal", example_records.__file__)
    without = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(without)
    assert without.inflation is zlib
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(frame([b"a", b"b"])) + gzip.compress(frame([b"c" * 10_000_000])))
    assert list(map(len, (one for some in without.records(str(path)) for one in some))) == [1, 1, 10_000_000]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(without.ComponentError, match="cannot be read: it ends too early"):
        list(without.records(str(path)))
    path.write_bytes(b"no gzip at all")
    with pytest.raises(without.ComponentError, match="cannot be read"):
        list(without.records(str(path)))


PACKED = MappingProxyType(
    {
        "": bytes,
        ".gz": gzip.compress,
        ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    }
)
ROWS = [b"%09d" % number * 50 for number in range(20_000)]


@pytest.fixture
def written(tmp_path):
    """Writes a file of records, compressed as its name says; returns its path and what was written."""

    def write(suffix):
        path = tmp_path / f"rows{suffix}"
        path.write_bytes(PACKED[suffix](frame(ROWS)))
        return path, bytearray(path.read_bytes())

    return write


@pytest.mark.parametrize("suffix", PACKED)
def test_records_are_the_same_however_they_are_compressed(written, suffix):
    path, _ = written(suffix)
    lists = list(records(str(path)))
    assert [record for some in lists for record in some] == ROWS
    assert len(lists) > 1, "not all of it at once"
    assert first_records(str(path), 2) == ROWS[:2]
    path.write_bytes(PACKED[suffix](b""))
    assert list(records(str(path))) == []


@pytest.mark.parametrize("suffix", PACKED)
def test_damage_is_found_however_they_are_compressed(written, suffix):
    path, data = written(suffix)
    path.write_bytes(data[:-5])
    with pytest.raises(ComponentError, match=r"/rows[.a-z]* cannot be read: "):
        list(records(str(path)))
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ComponentError, match=r"/rows[.a-z]* cannot be read: "):
        list(records(str(path)))
