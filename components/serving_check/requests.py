"""Builds the requests: real rows of the eval split without the label, and perturbed ones."""

import itertools
import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from slipway.components.errors import ComponentError
from slipway.components.even_sample import even_sample_of_files
from slipway.components.example_records import records
from slipway.components.serving_check.perturbations import Column, Perturbation, marks_empty

_MOST_BYTES = 256 << 20  # read in a second or two; a fault in a few rows of more data may go unseen


def read_rows(files: Iterable[str], *, rows: int) -> list[bytes]:
    """Return serialized tf.Examples, always the same sample, spread evenly over the files; in random order.

    Args:
        files: TFRecord files; those that end in .gz or .zst are compressed.
        rows: the most examples to return, >= 1.

    Raises:
        ComponentError: there are no examples.
    """
    if not (found := even_sample_of_files(sorted(files), _read, most=rows, most_bytes=_MOST_BYTES)):
        raise ComponentError(
            "the eval split has no example to query the model with", hint="look at data.split"
        )
    drawn = random.Random(1)  # noqa: S311 (no secret: the first rows, which are asked alone, are a sample, too)
    return drawn.sample(found, len(found))


def _read(file: str) -> Iterator[bytes]:
    return itertools.chain.from_iterable(records(file))


def only_columns(row: bytes, names: Collection[str]) -> bytes:
    """Return the row with only these columns, as a client sends it."""
    example = tf.train.Example.FromString(row)
    for name in example.features.feature.keys() - set(names):
        del example.features.feature[name]
    serialized: bytes = example.SerializeToString(deterministic=True)
    return serialized


def columns_with_marks(rows: Iterable[bytes], columns: Sequence[Column]) -> list[str]:
    """Return the names of the columns in whose rows a value is what `serve_raw` takes for an empty cell."""
    examples = [tf.train.Example.FromString(row) for row in rows]
    return [
        column.name
        for column in columns
        if any(marks_empty(column, _values(example.features.feature, column.name)) for example in examples)
    ]


def _values(features: Any, name: str) -> Sequence[Any]:
    kind = features[name].WhichOneof("kind") if name in features else None
    values: Sequence[Any] = getattr(features[name], kind).value if kind else ()
    return values


def perturbed(row: bytes, change: Perturbation) -> bytes:
    """Return the row with some columns changed or removed."""
    example = tf.train.Example.FromString(row)
    features = example.features.feature
    for name, values in change.columns.items():
        if name in features:
            del features[name]
        if values is None:
            continue
        if not values:
            features[name].SetInParent()
        elif isinstance(values[0], bytes):
            features[name].bytes_list.value.extend(values)
        elif isinstance(values[0], int):
            features[name].int64_list.value.extend(values)
        else:
            features[name].float_list.value.extend(values)
    serialized: bytes = example.SerializeToString(deterministic=True)
    return serialized


def write_rows(path: Path, rows: Sequence[bytes]) -> None:
    """Write rows for `client.py`."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            writer.write(row)
