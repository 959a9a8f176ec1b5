"""Writes a stream of rows as Parquet files of a size that several processes can share out."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

# In Arrow's form; on disk they take a third of it and less.
_PART_BYTES = 64 << 20


def write_parts(schema: pa.Schema, batches: Iterable[pa.RecordBatch], folder: Path) -> tuple[int, list[Path]]:
    """Writes part-00000.parquet and following; without rows one that has none.

    Args:
        schema: of the batches.
        batches: in order; read once.
        folder: exists.

    Returns:
        How many rows there were, and the files.
    """
    # Texts repeat; a dictionary of numbers takes longer than it saves.
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
