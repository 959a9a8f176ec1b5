"""Reads files of examples into large batches of columns."""

import zlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

from slipway.components.example_records import records

BATCH_ROWS = 32_768
"""Rows of a batch at most."""

BATCH_BYTES = 64 << 20
"""Of the examples of a batch: each costs a generator some tenths of a millisecond a column."""


def batches(file: str, sample: float | None = None, *, parts: int = 1) -> Iterator[pa.RecordBatch]:
    """The rows of a compressed file of examples, in its order; each column is a list of values per row.

    Args:
        file: its path, local or on gs://.
        sample: the share of rows wanted, 0 to 1; the same rows each time. None: all.
        parts: a batch is so many times smaller than usual.

    Raises:
        ComponentError: the file is damaged.
    """
    decoder = ExamplesToRecordBatchDecoder()
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
                yield decoder.DecodeBatch(batch)
                batch, size = [], 0
    if batch:
        yield decoder.DecodeBatch(batch)
