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

# Rows of a batch at most, and the bytes of their examples. Larger ones are not faster.
BATCH_ROWS = 16_384
BATCH_BYTES = 8 << 20
_READ_ROWS = 256
_GZIP_WINDOW = 16 + 15  # zlib's way to ask for gzip's frame
_GZIP_LEVEL = 1


class Columns:
    """Reads the examples of a schema as all of TFX does.

    Args:
        schema: the examples'.
        names: the columns that are wanted; None: all.
    """

    def __init__(self, schema: Any, names: Sequence[str] | None = None) -> None:
        if names is not None:
            schema = tensor_representation_util.ProjectTensorRepresentationsInSchema(schema, list(names))
        self._decoder = ExamplesToRecordBatchDecoder(schema.SerializeToString())
        reader = TFExampleBeamRecord("tfrecords_gzip", ["Transform"], schema)
        self._adapter = reader.TensorAdapter()

    @property
    def specs(self) -> dict[str, tf.TypeSpec]:
        """The type of each column's tensor, as the user's function gets it."""
        specs: dict[str, tf.TypeSpec] = self._adapter.OriginalTypeSpecs()
        return specs

    def batches(self, files: Sequence[str], most_rows: int = BATCH_ROWS) -> Iterator[dict[str, TensorType]]:
        """The rows of some files, in their order: tensors by column, about as many at once as wanted."""
        for batch in read(files, most_rows):
            yield self._adapter.ToBatchTensors(self._decoder.DecodeBatch(batch), produce_eager_tensors=True)


def read(files: Sequence[str], most_rows: int = BATCH_ROWS) -> Iterator[list[bytes]]:
    """The records of compressed files, many at a time, in their order.

    Raises:
        ComponentError: a file is damaged.
    """
    batch: list[bytes] = []
    size = 0
    first = next((len(record) for file in files for record in first_records(file, 1)), 1)
    # Of large ones, such as images, few are looked at between two looks at the limits.
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
    """Serialises transformed batches as TFX's Transform does."""

    def __init__(self, schema: Any) -> None:
        self._encoder = RecordBatchToExamplesEncoder(schema)
        self._converter = impl_helper.make_tensor_to_arrow_converter(schema)

    def encode(self, batch: Mapping[str, TensorType]) -> Iterator[list[bytes]]:
        """The examples of a batch; a very large one in several parts."""
        parts: Iterable[tuple[pa.RecordBatch, Any]] = beam_impl._convert_to_record_batch(
            dict(batch), self._converter, set(), None
        )
        for part, _ in parts:
            yield self._encoder.encode(part)


def write(path: str, parts: Iterable[Sequence[bytes]]) -> int:
    """Writes a compressed file of records; returns how many. What an error has left half done is removed."""
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
