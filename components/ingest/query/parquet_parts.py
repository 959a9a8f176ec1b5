"""Writes a stream of rows as Parquet files small enough to divide among processes."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

# Size in Arrow's format; on disk, parts take a third of it or less.
_PART_BYTES = 64 << 20


def write_parts(schema: pa.Schema, batches: Iterable[pa.RecordBatch], folder: Path) -> tuple[int, list[Path]]:
    """Write part-00000.parquet and following; without rows, write one empty file.

    Args:
        batches: the batches in order; iterated once.
        folder: an existing folder.

    Returns:
        The number of rows, and the files.
    """
    # Texts repeat; dictionaries of numbers cost more time than they save.
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    parts: list[Path] = []
    rows = 0
    stream = iter(batches)
    batch = next(stream, None)
    while batch is not None or not parts:
        parts.append(folder / f"part-{len(parts):05d}.parquet")
        size = 0
        with pq.ParquetWriter(parts[-1], schema, use_dictionary=texts, compression="lz4") as writer:
            while batch is not None and size < _PART_BYTES:
                writer.write_batch(batch)
                rows += batch.num_rows
                size += batch.nbytes
                batch = next(stream, None)
    return rows, parts
