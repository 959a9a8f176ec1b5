"""Records with their checksums, dealt over shards."""

import pytest

from slipway.components.ingest.tfrecord import ShardWriter, masked_crc32c


def test_checksum_is_that_of_tfrecord_files():
    # The head of an empty record, as TensorFlow writes it.
    assert masked_crc32c(b"\0" * 8).to_bytes(4, "little") == bytes.fromhex("29039807")


def _rows(count):
    return [b"%d" % i for i in range(count)]


@pytest.mark.parametrize("lanes", [1, 3, 8])
@pytest.mark.parametrize(("compression", "gzip_level"), [("gzip", 1), ("gzip", 9), ("none", 1), ("zstd", 1)])
def test_rows_are_dealt_over_the_shards(tmp_path, read_shard, lanes, compression, gzip_level):
    writer = ShardWriter(
        str(tmp_path / "x"),
        lanes=lanes,
        target_bytes=1 << 30,
        compression=compression,
        gzip_level=gzip_level,
        open_output=_open,
    )
    rows = _rows(20)
    writer.write(rows[:7])
    writer.write(rows[7:])
    shards = writer.close()
    dealt = [[int(record) for record in read_shard(tmp_path / shard.name)] for shard in shards]
    assert dealt == [list(range(lane, 20, lanes)) for lane in range(lanes)]
    assert [shard.rows for shard in shards] == [len(each) for each in dealt]


def test_full_shard_is_followed_by_another(tmp_path):
    writer = ShardWriter(
        str(tmp_path / "x"), lanes=1, target_bytes=100, compression="none", open_output=_open
    )
    for _ in range(6):
        writer.write(_rows(4))
    assert [shard.rows for shard in writer.close()] == [8, 8, 8]


def test_disk_that_is_full_is_reported(tmp_path):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    writer = ShardWriter("x", lanes=1, target_bytes=100, compression="none", open_output=lambda _: Full())

    def fill():
        for _ in range(100):
            writer.write(_rows(2))
        writer.close()

    with pytest.raises(OSError, match="No space left"):
        fill()


def _open(path):
    return open(path, "wb")  # noqa: PTH123
