"""Makes the requests: real rows of the eval split, without the label, and strange ones."""

import random
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import tensorflow as tf

from slipway.components.errors import ComponentError
from slipway.components.serving_check.perturbations import Perturbation


def read_rows(files: Iterable[str], *, rows: int, seed: int = 1) -> list[bytes]:
    """Serialized tf.Examples, drawn from the first tenfold of them in the files.

    Args:
        files: TFRecord files; those that end in .gz are gzip.
        rows: how many at most, >= 1.
        seed: of the draw, so that a run can be repeated.

    Raises:
        ComponentError: there are none.
    """
    found: list[bytes] = []
    for file in sorted(files):
        kind = "GZIP" if file.endswith(".gz") else ""
        found += [r.numpy() for r in tf.data.TFRecordDataset(file, kind).take(10 * rows - len(found))]
        if len(found) >= 10 * rows:
            break
    if not found:
        raise ComponentError(
            "the eval split has no example to query the model with", hint="look at data.split"
        )
    drawn = random.Random(seed)  # noqa: S311 (a sample, no secret)
    return drawn.sample(found, min(rows, len(found)))


def only_columns(row: bytes, names: Collection[str]) -> bytes:
    """The row with those columns alone, as a client sends it."""
    example = tf.train.Example.FromString(row)
    for name in example.features.feature.keys() - set(names):
        del example.features.feature[name]
    serialized: bytes = example.SerializeToString(deterministic=True)
    return serialized


def perturbed(row: bytes, change: Perturbation) -> bytes:
    """The row with some columns changed or taken away."""
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
    """Writes rows where `client.py` reads them."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            writer.write(row)
