"""Applies the finished graph to files of examples, in large batches."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform.common_types import TensorType
from tensorflow_transform.saved.saved_transform_io_v2 import SavedModelLoader
from tensorflow_transform.tf_metadata import metadata_io
from tfx.dsl.io import fileio

from slipway.components.counted_words import counted
from slipway.components.progress import report as tell
from slipway.components.transform.examples import BATCH_ROWS, Columns, Encoder, write
from slipway.components.transform.failed_rows import told_in_words

_OUTPUT_BYTES = 64 << 20


class Finished:
    """A finished graph.

    Args:
        folder: of the artifact `transform_graph`.
        columns: how examples are read: with the columns that the outputs are made of at least.
    """

    def __init__(self, folder: str, columns: Columns) -> None:
        self._columns = columns
        self._loader = SavedModelLoader(f"{folder}/{tft.TFTransformOutput.TRANSFORM_FN_DIR}")
        self._loader.finalize(set(columns.specs), set(self._loader.structured_outputs))
        described = metadata_io.read_metadata(f"{folder}/{tft.TFTransformOutput.TRANSFORMED_METADATA_DIR}")
        self._encoder = Encoder(described.schema)
        self._most_rows = _most_rows(self._loader.structured_outputs.values())

    def materialize(self, files: Sequence[str], prefix: str) -> None:
        """Transforms a split: each file of examples becomes one of transformed ones, in its order.

        Args:
            files: of serialised examples.
            prefix: path of what is written, without the number and the suffix.
        """
        fileio.makedirs(prefix.rpartition("/")[0])
        for number, file in enumerate(files):
            write(f"{prefix}-{number:05d}-of-{len(files):05d}.gz", self._transformed(file))

    def _transformed(self, file: str) -> Iterator[list[bytes]]:
        for batch in told(self._columns.batches([file], self._most_rows), "transformed"):
            with told_in_words(tf.errors.OpError):
                features = self._loader.apply_transform_model(batch)
            yield from self._encoder.encode(features)


def _most_rows(outputs: Iterable[Any]) -> int:
    """Rows of a batch whose dense outputs take `_OUTPUT_BYTES` at most: one image's pixels are many."""
    dense = [one for one in outputs if isinstance(one, tf.Tensor) and one.shape.rank]
    row: int = sum(one.dtype.size * math.prod(size or 1 for size in one.shape[1:]) for one in dense)
    return max(1, min(BATCH_ROWS, _OUTPUT_BYTES // max(row, 1)))


def told(batches: Iterator[dict[str, TensorType]], what: str) -> Iterator[dict[str, TensorType]]:
    """The batches, while people are told how many rows went by."""
    rows = 0
    for batch in batches:
        yield batch
        first = next(iter(batch.values()), None)
        rows += int(first.shape[0] or 0) if first is not None else 0
        tell(f"{counted(rows, 'row')} {what}")
