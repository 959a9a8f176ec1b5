"""Applies the finished graph to files of examples, in large batches."""

import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform.saved.saved_transform_io_v2 import SavedModelLoader
from tensorflow_transform.tf_metadata import metadata_io
from tfx.dsl.io import fileio

from slipway.components.process_pool import TaskProgress
from slipway.components.shards import Shard
from slipway.components.transform.examples import BATCH_ROWS, Columns, Encoder, write
from slipway.components.transform.failed_rows import told_in_words

_OUTPUT_BYTES = 64 << 20


class Finished:
    """A finished transform graph, loaded to be applied.

    Args:
        folder: the folder of the artifact `transform_graph`.
        columns: reads the examples; must include the columns that the outputs are computed from.
    """

    def __init__(self, folder: str, columns: Columns) -> None:
        self._columns = columns
        self._loader = SavedModelLoader(f"{folder}/{tft.TFTransformOutput.TRANSFORM_FN_DIR}")
        self._loader.finalize(set(columns.specs), set(self._loader.structured_outputs))
        described = metadata_io.read_metadata(f"{folder}/{tft.TFTransformOutput.TRANSFORMED_METADATA_DIR}")
        self._encoder = Encoder(described.schema)
        self._most_rows = _most_rows(self._loader.structured_outputs.values())

    def transformed(self, file: str, *, parts: int = 1) -> Iterator[list[bytes]]:
        """Yield the transformed examples of a file, in the file's order.

        Args:
            file: the path of a file of serialized examples.
            parts: the factor by which batches are smaller than usual.
        """
        for batch in self._columns.batches([file], max(self._most_rows // parts, 1)):
            with told_in_words(tf.errors.OpError, memory=tf.errors.ResourceExhaustedError):
                features = self._loader.apply_transform_model(batch)
            yield from self._encoder.encode(features)


@dataclass(frozen=True)
class Materialize:
    """Transforms a file of examples into a file of transformed examples.

    Attributes:
        folder: the folder of the artifact `transform_graph`.
        schema: the schema of the examples, serialized.
        columns: the columns to read.
        prefixes: by split, the path of the files to write, without number and suffix.
        unfinished: the folder for files that are being written; empty: each is written in its place, which
            suffices where no task is done twice at the same time.
        parts: the factor by which batches are smaller than usual.
    """

    folder: str
    schema: bytes
    columns: Sequence[str]
    prefixes: Mapping[str, str]
    unfinished: str = ""
    parts: int = 1

    @cached_property
    def _finished(self) -> Finished:
        return Finished(self.folder, Columns(schema_pb2.Schema.FromString(self.schema), self.columns))

    def __call__(self, shard: Shard, progress: TaskProgress) -> None:
        """Transform the only file of a shard, and write the result."""
        [file] = shard.files
        path = f"{self.prefixes[shard.split]}-{shard.first:05d}-of-{shard.of:05d}.gz"
        # An engine may do a task twice, and the one that fails must not take the other's file along.
        own = f"{self.unfinished}/{secrets.token_hex(8)}.gz" if self.unfinished else path
        rows = write(own, _told(self._finished.transformed(file, parts=self.parts), progress))
        if own != path:
            fileio.rename(own, path, overwrite=True)
        progress(rows, shard.size_bytes)

    def __getstate__(self) -> dict[str, object]:
        # Without the graph: each process loads its own.
        return {each.name: getattr(self, each.name) for each in fields(self)}


def _told(records: Iterable[list[bytes]], progress: TaskProgress) -> Iterator[list[bytes]]:
    rows = 0
    for some in records:
        yield some
        rows += len(some)
        progress(rows, 0)


def _most_rows(outputs: Iterable[Any]) -> int:
    """Return how many rows have dense outputs of at most `_OUTPUT_BYTES`; those of an image are large."""
    dense = [one for one in outputs if isinstance(one, tf.Tensor) and one.shape.rank]
    row: int = sum(one.dtype.size * math.prod(size or 1 for size in one.shape[1:]) for one in dense)
    return max(1, min(BATCH_ROWS, _OUTPUT_BYTES // max(row, 1)))
