"""Reads files of examples into batches of columns, and writes transformed batches to files."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import tensorflow as tf
from isal import isal_zlib
from tensorflow_transform import impl_helper
from tensorflow_transform.beam import impl as beam_impl
from tensorflow_transform.common_types import TensorType
from tfx.dsl.io import fileio
from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder, RecordBatchToExamplesEncoder
from tfx_bsl.tfxio import tensor_representation_util
from tfx_bsl.tfxio.tf_example_record import TFExampleBeamRecord

from slipway.components.example_records import first_records, in_pieces, records
from slipway.components.ingest.tfrecord import frame

# The maximum number of rows and bytes of examples in a batch. Larger batches are not faster.
BATCH_ROWS = 16_384
BATCH_BYTES = 8 << 20
_READ_ROWS = 256
_GZIP_WINDOW = 16 + 15  # zlib's code for the gzip format
_GZIP_LEVEL = 1


class Columns:
    """Reads examples into tensors as TFX does, by TFXIO.

    Args:
        schema: the schema of the examples.
        names: the columns to read; None for all.
    """

    def __init__(self, schema: Any, names: Sequence[str] | None = None) -> None:
        if names is not None:
            schema = tensor_representation_util.ProjectTensorRepresentationsInSchema(schema, list(names))
        self._decoder = ExamplesToRecordBatchDecoder(schema.SerializeToString())
        reader = TFExampleBeamRecord("tfrecords_gzip", ["Transform"], schema)
        self._adapter = reader.TensorAdapter()

    @property
    def specs(self) -> dict[str, tf.TypeSpec]:
        """The type of each column's tensor, as the preprocessing_fn receives it."""
        specs: dict[str, tf.TypeSpec] = self._adapter.OriginalTypeSpecs()
        return specs

    def batches(self, files: Sequence[str], most_rows: int = BATCH_ROWS) -> Iterator[dict[str, TensorType]]:
        """Yield the rows of some files in order, as tensors by column, about `most_rows` rows at a time."""
        for batch in read(files, most_rows):
            yield self._adapter.ToBatchTensors(self._decoder.DecodeBatch(batch), produce_eager_tensors=True)


def read(files: Sequence[str], most_rows: int = BATCH_ROWS) -> Iterator[list[bytes]]:
    """Yield the records of compressed files in order, many at a time.

    Raises:
        ComponentError: a file is damaged.
    """
    batch: list[bytes] = []
    size = 0
    first = next((len(record) for file in files for record in first_records(file, 1)), 1)
    # Take few large records, such as images, at once, so that the limits are checked often.
    together = max(1, min(_READ_ROWS, most_rows, BATCH_BYTES // max(first, 1)))
    for some in in_pieces(itertools.chain.from_iterable(map(records, files)), together):
        batch += some
        size += sum(map(len, some))
        if len(batch) >= most_rows or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Encoder:
    """Serializes transformed batches as TFX's Transform does."""

    def __init__(self, schema: Any) -> None:
        self._encoder = RecordBatchToExamplesEncoder(schema)
        self._converter = impl_helper.make_tensor_to_arrow_converter(schema)

    def encode(self, batch: Mapping[str, TensorType]) -> Iterator[list[bytes]]:
        """Yield the examples of a batch; a very large batch in several parts."""
        parts: Iterable[tuple[pa.RecordBatch, Any]] = beam_impl._convert_to_record_batch(
            dict(batch), self._converter, set(), None
        )
        for part, _ in parts:
            yield self._encoder.encode(part)


def write(path: str, parts: Iterable[Sequence[bytes]]) -> int:
    """Write a compressed file of records, and return their number. If an error occurs, remove the file."""
    rows = 0
    gzip = isal_zlib.compressobj(_GZIP_LEVEL, isal_zlib.DEFLATED, _GZIP_WINDOW)
    try:
        with fileio.open(path, "wb") as file:
            for some in parts:
                file.write(gzip.compress(frame(some)))
                rows += len(some)
            file.write(gzip.flush())
    except BaseException:
        if fileio.exists(path):
            fileio.remove(path)
        raise
    return rows
