"""Reads files of examples into batches of columns, and writes transformed batches to files."""

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf
from isal import isal_zlib
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform import impl_helper
from tensorflow_transform.beam import impl as beam_impl
from tensorflow_transform.common_types import TensorType
from tensorflow_transform.tf_metadata import schema_utils
from tfx.dsl.io import fileio
from tfx_bsl.coders.example_coder import RecordBatchToExamplesEncoder
from tfx_bsl.tfxio import tensor_representation_util
from tfx_bsl.tfxio.tf_example_record import TFExampleBeamRecord

from slipway.components.example_batches import ExampleDecoder
from slipway.components.example_records import first_records, in_pieces, records
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.example_encoding import ExampleEncoder, bytes_of
from slipway.components.ingest.tfrecord import frame

# The maximum number of rows and bytes of examples in a batch. Larger batches are not faster.
BATCH_ROWS = 16_384
BATCH_BYTES = 8 << 20
_READ_ROWS = 256
# The representations of TFX's schema whose tensors `tf.io.parse_example` makes as TFXIO does.
_PARSED_ALIKE = {"dense_tensor", "varlen_sparse_tensor"}
_KINDS = {
    schema_pb2.INT: ColumnType.INT,
    schema_pb2.FLOAT: ColumnType.FLOAT,
    schema_pb2.BYTES: ColumnType.TEXT,
}
_DTYPES = {ColumnType.INT: tf.int64, ColumnType.FLOAT: tf.float32, ColumnType.TEXT: tf.string}
_GZIP_WINDOW = 16 + 15  # zlib's code for the gzip format
_GZIP_LEVEL = 1


class Columns:
    """Reads examples into the tensors that TFXIO, TFX's reader, gives.

    TFXIO decodes to Arrow first. Where TensorFlow's own parser gives the same tensors it is used instead: it
    needs less than half of the time.

    Args:
        schema: the schema of the examples.
        names: the columns to read; None for all.
    """

    def __init__(self, schema: Any, names: Sequence[str] | None = None) -> None:
        if names is not None:
            schema = tensor_representation_util.ProjectTensorRepresentationsInSchema(schema, list(names))
        self._decoder = ExampleDecoder(schema)
        reader = TFExampleBeamRecord("tfrecords_gzip", ["Transform"], schema)
        self._adapter = reader.TensorAdapter()
        self._parse = _parser(schema, reader.TensorRepresentations())

    @property
    def specs(self) -> dict[str, tf.TypeSpec]:
        """The type of each column's tensor, as the preprocessing_fn receives it."""
        specs: dict[str, tf.TypeSpec] = self._adapter.OriginalTypeSpecs()
        return specs

    def batches(self, files: Sequence[str], most_rows: int = BATCH_ROWS) -> Iterator[dict[str, TensorType]]:
        """Yield the rows of some files in order, as tensors by column, about `most_rows` rows at a time."""
        for batch in read(files, most_rows):
            yield self._tensors(batch)

    def _tensors(self, batch: list[bytes]) -> dict[str, TensorType]:
        if self._parse is not None:
            try:
                parsed: dict[str, TensorType] = self._parse(tf.constant(batch, tf.string))
            except tf.errors.ResourceExhaustedError:
                raise  # TFXIO needs more memory; smaller batches less
            except tf.errors.OpError as error:  # TFXIO may take these rows; if not, its message is TFX's
                logging.info("TFXIO reads a batch that tf.io.parse_example refuses: %s", error.message)
            else:
                return parsed
        decoded = self._decoder.decode(batch)
        tensors: dict[str, TensorType] = self._adapter.ToBatchTensors(decoded, produce_eager_tensors=True)
        return tensors


def _parser(schema: Any, representations: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    """Return a function from serialized examples to their tensors; None if only TFXIO gives these."""
    types = {feature.name: feature.type for feature in schema.feature}
    if not representations or not all(_is_parsed_alike(*each) for each in representations.items()):
        return None
    spec = {
        name: tensor_representation_util.CreateTfExampleParserConfig(each, types[name])
        for name, each in representations.items()
    }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def parse(examples: Any) -> Any:
        return tf.io.parse_example(examples, spec)

    return parse.get_concrete_function()  # type: ignore[no-any-return]


def _is_parsed_alike(name: str, representation: Any) -> bool:
    kind = representation.WhichOneof("kind")
    return kind in _PARSED_ALIKE and getattr(representation, kind).column_name == name


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
    """Serializes transformed batches with the values that TFX's Transform writes, ordered by name."""

    def __init__(self, schema: Any) -> None:
        self._stock = RecordBatchToExamplesEncoder(schema)
        self._converter = impl_helper.make_tensor_to_arrow_converter(schema)
        kinds = {feature.name: _KINDS.get(feature.type) for feature in schema.feature}
        self._kinds = {name: kind for name, kind in kinds.items() if kind is not None}
        self._dense = ExampleEncoder(self._kinds)
        specs = schema_utils.schema_as_feature_spec(schema).feature_spec
        self._shapes = {name: each.shape for name, each in specs.items() if hasattr(each, "shape")}

    def encode(self, batch: Mapping[str, TensorType]) -> Iterator[list[bytes]]:
        """Yield the examples of a batch; a very large batch in several parts."""
        columns = {
            name: _dense_column(value, self._kinds.get(name), self._shapes.get(name))
            for name, value in batch.items()
        }
        arrays = {name: column for name, column in columns.items() if column is not None}
        if arrays and arrays.keys() == batch.keys() == self._kinds.keys():
            yield bytes_of(self._dense.encode(arrays, len(next(iter(arrays.values())))))
            return
        parts: Iterable[tuple[pa.RecordBatch, Any]] = beam_impl._convert_to_record_batch(
            dict(batch), self._converter, set(), None
        )
        for part, _ in parts:
            yield self._stock.encode(part)


def _dense_column(value: TensorType, kind: ColumnType | None, shape: Sequence[int] | None) -> pa.Array | None:
    """Return the values of a dense tensor, one or a list for each row; None for any other tensor."""
    if kind is None or not isinstance(value, tf.Tensor) or value.dtype != _DTYPES[kind]:
        return None
    values = value.numpy()
    if shape is None or list(values.shape[1:]) != list(shape) or not values.size:
        return None
    flat = values.reshape(-1)
    array = pa.array(flat, pa.large_binary() if kind == ColumnType.TEXT else None)
    if len(flat) == len(values):
        return array
    offsets = np.arange(0, len(flat) + 1, len(flat) // len(values), dtype=np.int64)
    return pa.LargeListArray.from_arrays(pa.array(offsets), array)


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
