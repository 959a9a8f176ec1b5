"""Files of examples as batches of columns."""

import gzip
import struct

import pytest

from slipway.components import example_records
from slipway.components.errors import ComponentError
from slipway.components.ingest.tfrecord import frame
from slipway.components.statistics_gen import reading
from slipway.components.statistics_gen.reading import batches

ROWS = 1_000


def example(number):
    """A tf.Example with `number` in its only column, as its bytes."""
    value = struct.pack("<f", number)

    def nested(field, inner):
        return bytes([field << 3 | 2, len(inner)]) + inner

    entry = nested(1, b"number") + nested(2, nested(2, nested(1, value)))
    return nested(1, nested(1, entry))


@pytest.fixture
def file(tmp_path):
    """A file that consists of two compressed ones."""
    path = tmp_path / "rows.gz"
    halves = [map(example, range(500)), map(example, range(500, ROWS))]
    path.write_bytes(b"".join(gzip.compress(frame(list(half))) for half in halves))
    return path


def numbers(found):
    return [int(value) for each in found for value in each.column(0).flatten().to_pylist()]


def test_rows_come_in_their_order(file):
    (batch,) = batches(str(file))
    assert batch.schema.names == ["number"]
    assert numbers([batch]) == list(range(ROWS))


@pytest.mark.parametrize(("name", "limit"), [("BATCH_ROWS", 300), ("BATCH_BYTES", 300 * len(example(1)))])
def test_batches_end_at_their_limits(file, monkeypatch, name, limit):
    monkeypatch.setattr(reading, name, limit)
    monkeypatch.setattr(example_records, "_PIECE_BYTES", 100)
    found = list(batches(str(file)))
    assert len(found) > 1
    assert numbers(found) == list(range(ROWS))


def test_equal_rows_that_unpack_to_much_come_in_batches_no_larger(tmp_path, monkeypatch):
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(frame([example(7)] * 200_000)) * 2)
    assert path.stat().st_size < example_records._PIECE_BYTES, "all of it is read at once"
    with path.open("rb") as opened:
        pieces = [len(piece) for piece in example_records._inflated(opened, example_records._INFLATED_BYTES)]
    assert max(pieces) == example_records._INFLATED_BYTES
    assert sum(pieces) == 2 * 200_000 * len(frame([example(7)]))
    found = [batch.num_rows for batch in batches(str(path))]
    assert found == [reading.BATCH_ROWS] * (400_000 // reading.BATCH_ROWS) + [400_000 % reading.BATCH_ROWS]
    monkeypatch.setattr(reading, "BATCH_BYTES", 1_000 * len(example(7)))
    assert {batch.num_rows for batch in batches(str(path))} == {1_000}


@pytest.mark.parametrize("at_once", [1, 7, 64])
def test_pieces_may_end_anywhere(file, monkeypatch, at_once):
    monkeypatch.setattr(example_records, "_INFLATED_BYTES", at_once)
    monkeypatch.setattr(example_records, "_PIECE_BYTES", 50)
    assert numbers(batches(str(file))) == list(range(ROWS))


def test_sample_is_the_same_each_time(file):
    first = numbers(batches(str(file), 0.3))
    assert 200 < len(first) < 400
    assert first == numbers(batches(str(file), 0.3)) == sorted(first)
    assert numbers(batches(str(file), 1.0)) == list(range(ROWS))


def test_file_without_rows_gives_none(tmp_path):
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(b""))
    assert list(batches(str(path))) == []


def test_damage_is_reported(file, tmp_path):
    whole = file.read_bytes()
    for data, why in (
        (whole[:-100], "it ends too early"),
        (gzip.compress(frame([example(1)])[:-1]), "it ends within a record"),
        (b"no gzip at all", "Invalid gzip"),
        (whole[:200] + b"\0" * 50 + whole[250:], "cannot be read"),
    ):
        file.write_bytes(data)
        with pytest.raises(ComponentError, match=why):
            list(batches(str(file)))
    with pytest.raises(ComponentError, match=r"nothing\.gz cannot be read"):
        list(batches(str(tmp_path / "nothing.gz")))
