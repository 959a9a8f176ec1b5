"""Reads files of examples into large batches of columns."""

import zlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from slipway.components.example_batches import ExampleDecoder
from slipway.components.example_records import records

BATCH_ROWS = 32_768
"""The maximum number of rows in a batch."""

BATCH_BYTES = 64 << 20
"""The maximum size of a batch's examples; each batch costs a generator some tenths of a ms per column."""


def batches(file: str, sample: float | None = None, *, parts: int = 1) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a compressed file of examples in order; a column has a list of values per row.

    Args:
        file: the path of the file, local or on gs://.
        sample: the share of rows to sample, 0 to 1, the same rows each time; None for all rows.
        parts: the factor by which batches are smaller than usual.

    Raises:
        ComponentError: the file is damaged.
    """
    decoder = ExampleDecoder()
    chance = np.random.default_rng(zlib.crc32(file.rpartition("/")[2].encode()))
    batch: list[bytes] = []
    size = 0
    for some in records(file):
        wanted = some
        if sample is not None:
            wanted = [some[place] for place in np.flatnonzero(chance.random(len(some)) < sample)]
        for record in wanted:
            batch.append(record)
            size += len(record)
            if len(batch) >= BATCH_ROWS // parts or size >= BATCH_BYTES // parts:
                yield decoder.decode(batch)
                batch, size = [], 0
    if batch:
        yield decoder.decode(batch)
