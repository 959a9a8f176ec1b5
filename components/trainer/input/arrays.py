"""Holds all rows in memory or in one mapped file: an epoch is a random permutation of their numbers.

The shuffle covers the whole set and costs 0.3 microseconds per row. The batches of epoch n depend only on the
seed and n, so a training resumes within an epoch without reading the batches before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from slipway.components.errors import ComponentError
from slipway.components.example_records import records
from slipway.components.trainer.buckets import Buckets
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.features import Feature
from slipway.components.trainer.input.parsing import (
    Columns,
    as_written,
    parsed_once,
)
from slipway.components.trainer.input.targets import Targets
from slipway.components.trainer.row_lengths import buckets_of

TAKEN_TOGETHER_BYTES = 2**20
MAX_TAKEN_TOGETHER = 16
"""Small batches are taken several at a time, because a gather of each column costs more than its few rows."""


class Rows(Protocol):
    """Rows with random access by number.

    Attributes:
        row_bytes: bytes of one parsed row.
        words: where the rows are, for people.
    """

    count: int
    row_bytes: int
    words: str

    def take(self, numbers: tf.Tensor) -> Columns:
        """Return the rows with these numbers, int64 [n]: one tensor per feature, [n, *feature.shape]."""

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a feature of all rows, [rows, *feature.shape]."""


class MemoryRows:
    """Rows in memory, as one tensor per feature.

    Args:
        columns: one tensor per feature, [rows, *feature.shape].
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.count = int(next(iter(columns.values())).shape[0])
        size = sum(values.dtype.size * int(np.prod(values.shape)) for values in columns.values())
        self.row_bytes = max(1, size // self.count)
        self.words = f"{self.count:,} examples in memory, {size / 2**20:.1f} MB"

    def take(self, numbers: tf.Tensor) -> Columns:
        """Return the rows with these numbers."""
        return {name: tf.gather(values, numbers) for name, values in self.columns.items()}

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a feature of all rows."""
        values: npt.NDArray[Any] = self.columns[name].numpy()
        return values


class FileRows:
    """Rows in a memory-mapped file with one record per row, so that a row is one read.

    Args:
        file: as `write` leaves it.
    """

    def __init__(self, file: Path, features: Sequence[Feature]) -> None:
        self._features = tuple(features)
        self._rows = np.memmap(file, dtype=_record(features), mode="r")
        self.count = len(self._rows)
        self.row_bytes = self._rows.dtype.itemsize
        self.words = f"{self.count:,} examples in a file, {file.stat().st_size / 2**20:.1f} MB"

    @staticmethod
    def write(file: Path, files: Sequence[str], features: Sequence[Feature]) -> None:
        """Parse TFRecord files into a file of rows, in order.

        Raises:
            ComponentError: there is no row, a row lacks a feature, or the disk is full.
        """
        dtype = _record(features)
        try:
            with file.open("wb") as out:
                for columns in _parsed_batches(files, features):
                    block = np.empty(len(next(iter(columns.values()))), dtype)
                    for name, values in columns.items():
                        block[name] = values.numpy()
                    block.tofile(out)
        except OSError as error:
            raise ComponentError(
                f"the parsed examples cannot be kept in {file.parent}: {error.strerror or error}",
                hint="make room there (TMPDIR names another place), or set train.input.cache to none",
            ) from error

    def take(self, numbers: tf.Tensor) -> Columns:
        """Return the rows with these numbers."""
        dtypes = [tf.as_dtype(each.model_dtype) for each in self._features]
        values = tf.numpy_function(self._read, [numbers], dtypes, stateful=False)
        shapes = [(numbers.shape[0], *each.shape) for each in self._features]
        return {
            each.name: tf.ensure_shape(column, shape)
            for each, column, shape in zip(self._features, values, shapes, strict=True)
        }

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a feature of all rows, without reading it yet."""
        return self._rows[name]

    def _read(self, numbers: Any) -> list[Any]:
        block = self._rows[numbers]
        return [np.ascontiguousarray(block[each.name]) for each in self._features]


class PartOfRows:
    """A subset of other rows.

    Args:
        rows: all of them.
        numbers: of the rows in the subset, int64 [n].
    """

    def __init__(self, rows: Rows, numbers: npt.NDArray[np.int64]) -> None:
        self._rows, self._numbers = rows, tf.constant(numbers)
        self.numbers = numbers
        self.count, self.row_bytes = len(numbers), rows.row_bytes
        self.words = f"{self.count:,} of {rows.words}"

    def take(self, numbers: tf.Tensor) -> Columns:
        """Return the rows with these numbers, counted within the subset."""
        return self._rows.take(tf.gather(self._numbers, numbers))

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a feature of all the rows that this is a subset of."""
        return self._rows.column(name)


@dataclass(frozen=True)
class BucketedRows:
    """Rows in buckets by length.

    Attributes:
        of_rows: int64 [rows], the bucket of each.
    """

    buckets: Buckets
    of_rows: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: Rows, buckets: Buckets) -> Self | None:
        """Look at all rows; None without buckets."""
        if not buckets.lengths:
            return None
        of_rows = buckets_of({name: rows.column(name) for name in buckets.lengths}, buckets)
        return cls(buckets, of_rows[rows.numbers] if isinstance(rows, PartOfRows) else of_rows)

    @property
    def words(self) -> str:
        """How many rows each bucket has, as text."""
        counts = np.bincount(self.of_rows, minlength=self.buckets.count)
        return self.buckets.words(counts.tolist())

    def cut(self, columns: Columns, bucket: tf.Tensor) -> Columns:
        """Return a batch, [rows, length, ...] each, with the lengths of a bucket, int64 []."""
        cut = dict(columns)
        for name, lengths in self.buckets.lengths.items():
            column = columns[name]
            cut[name] = column[:, : tf.gather(tf.constant(lengths, tf.int64), bucket)]
            cut[name].set_shape((column.shape[0], None, *column.shape[2:]))
        return cut


def held_out(
    rows: Rows, *, share: float, seed: int, groups: npt.NDArray[np.int64] | None = None
) -> tuple[PartOfRows, PartOfRows]:
    """Split rows into those to train on and those held out, always in the same way for the same seed.

    Args:
        rows: all of them.
        share: the share to hold out, 0 .. 1; at least one row or group is held out.
        groups: the number of each row's group, [rows]: whole groups are held out, as many as reach the share,
            but never all, and one larger than the share only if the smaller ones do not reach it. None, or
            all the same: single rows are.
    """
    random, held = np.random.default_rng(seed), max(1, round(share * rows.count))
    sizes = np.empty(0, np.int64)
    if groups is not None:
        _, groups, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if groups is not None and len(sizes) > 1:
        mixed = random.permutation(len(sizes))
        # The rows without an id, such as those of guests, are one group, which may be most of all.
        mixed = mixed[np.argsort(np.maximum(sizes[mixed], held), kind="stable")]
        many = min(int(np.searchsorted(np.cumsum(sizes[mixed]), held)) + 1, len(sizes) - 1)
        is_held = np.isin(groups, mixed[:many])
        return PartOfRows(rows, np.flatnonzero(~is_held)), PartOfRows(rows, np.flatnonzero(is_held))
    order = random.permutation(rows.count)
    return PartOfRows(rows, np.sort(order[held:])), PartOfRows(rows, np.sort(order[:held]))


def groups_of(files: Sequence[str], name: str | None) -> npt.NDArray[np.int64] | None:
    """Return the number of each row's group, int64 [rows], as it is written; None without a name.

    A `Feature` would refuse numbers beyond 32 bits.

    Args:
        files: TFRecord files of tf.Examples.
        name: the column, one whole number in each row.
    """
    if name is None:
        return None
    spec = {name: tf.io.FixedLenFeature([], tf.int64)}
    parts = (part for file in files for part in records(file) if part)
    return np.concatenate([tf.io.parse_example(part, spec)[name].numpy() for part in parts])


def load_rows(
    files: Sequence[str], features: Sequence[Feature], *, limit_bytes: int | None = None
) -> MemoryRows | None:
    """Read and parse TFRecord files of tf.Examples into memory.

    Args:
        files: names ending in .gz are gzip, others are not compressed.
        limit_bytes: limit of the parsed rows; None: no limit.

    Returns:
        The rows; None if they exceed the limit.

    Raises:
        ComponentError: the files hold no row, or a row lacks a feature.
    """
    batches, held_bytes = [], 0
    for columns in _parsed_batches(files, features):
        batches.append(columns)
        held_bytes += sum(values.dtype.size * int(np.prod(values.shape)) for values in columns.values())
        if limit_bytes is not None and held_bytes > limit_bytes:
            return None
    return MemoryRows({each.name: tf.concat([batch[each.name] for batch in batches], 0) for each in features})


def training_batches(
    rows: Rows,
    *,
    targets: Targets,
    batch_size: int,
    seed: int,
    steps_per_epoch: int,
    first_step: int = 0,
    hosts: Hosts | None = None,
    block_steps: int | None = None,
    bucketed: BucketedRows | None = None,
) -> tf.data.Dataset:
    """Return endless batches of static shape, `steps_per_epoch` of them per epoch.

    The remainder of an epoch is left out; as every epoch has another order, different rows are left out each
    time.

    Args:
        rows: with the targets' columns.
        batch_size: over all hosts, each of which gets its part of every batch.
        steps_per_epoch: at most rows.count // batch_size.
        first_step: how many steps to skip at the beginning, >= 0.
        hosts: determines the part of this host; None: there is one host.
        block_steps: batches per element, a divisor of steps_per_epoch; fewer, a divisor of this number, if
            the remaining steps of a resumed epoch require it. None: each element is one batch.
        bucketed: the rows' lengths: a batch holds rows of one bucket, or of neighbouring ones, and is cut to
            the longest of them; the batches of an epoch come in random order. Not with `block_steps`. None:
            all batches have the columns' own lengths.

    Returns:
        A dataset of what `Targets.split` returns for batches, or for blocks of batches, with one more
        dimension in front.
    """
    place = hosts or Hosts()
    first_epoch, first_step_in_epoch = divmod(first_step, steps_per_epoch)
    total, part = rows.count, batch_size // place.count

    def epoch_order(epoch: tf.Tensor) -> tf.data.Dataset:
        pair = tf.stack([tf.constant(seed, tf.int64), epoch])
        order = tf.random.experimental.stateless_shuffle(tf.range(total, dtype=tf.int64), seed=pair)
        batches = tf.reshape(order[: steps_per_epoch * batch_size], [steps_per_epoch, place.count, part])
        left_out = tf.where(epoch == first_epoch, first_step_in_epoch, 0)
        return tf.data.Dataset.from_tensor_slices(batches[left_out:, place.index])

    if bucketed is not None:
        return _bucketed_batches(
            rows,
            bucketed,
            targets=targets,
            seed=seed,
            shape=(steps_per_epoch, place, part),
            first=(first_epoch, first_step_in_epoch),
        )

    # No block is cut short at the end of an epoch.
    block = math.gcd(block_steps, steps_per_epoch - first_step_in_epoch) if block_steps else None
    together = block or max(1, min(MAX_TAKEN_TOGETHER, TAKEN_TOGETHER_BYTES // (part * rows.row_bytes)))

    @as_written
    def take(numbers: tf.Tensor) -> Any:
        columns = rows.take(tf.reshape(numbers, [-1]))
        return targets.split(
            {
                name: tf.reshape(values, [block or -1, part, *values.shape[1:]])
                for name, values in columns.items()
            }
        )

    @as_written
    def portions_of(epoch: tf.Tensor) -> tf.data.Dataset:
        return epoch_order(epoch).batch(together, drop_remainder=block is not None)

    portions = tf.data.Dataset.counter(start=first_epoch).flat_map(portions_of)
    taken = portions.map(take, tf.data.AUTOTUNE, deterministic=True)
    return taken.prefetch(2) if block else taken.unbatch().prefetch(tf.data.AUTOTUNE)


def _bucketed_batches(
    rows: Rows,
    bucketed: BucketedRows,
    *,
    targets: Targets,
    seed: int,
    shape: tuple[int, Hosts, int],
    first: tuple[int, int],
) -> tf.data.Dataset:
    """Return endless batches of rows of similar length.

    Args:
        shape: batches per epoch, the hosts, and the rows of this host in a batch.
        first: the first epoch and, within it, the first batch.
    """
    steps, place, part = shape
    first_epoch, first_step = first
    of_rows = tf.constant(bucketed.of_rows)

    @as_written
    def batches_of(epoch: tf.Tensor) -> tf.data.Dataset:
        pair = tf.stack([tf.constant(seed, tf.int64), epoch])
        order = tf.random.experimental.stateless_shuffle(tf.range(rows.count, dtype=tf.int64), seed=pair)
        used = order[: steps * place.count * part]
        # Stable, so that rows of one bucket stay in random order.
        used = tf.gather(used, tf.argsort(tf.gather(of_rows, used), stable=True))
        # The shuffle of the batches has another seed than that of the rows.
        numbers = tf.random.experimental.stateless_shuffle(
            tf.range(steps), seed=pair + tf.constant([2**32, 0], tf.int64)
        )
        batches = tf.gather(tf.reshape(used, [steps, place.count, part]), numbers)
        longest = tf.reduce_max(tf.gather(of_rows, batches), axis=[1, 2])
        left_out = tf.where(epoch == first_epoch, first_step, 0)
        return tf.data.Dataset.from_tensor_slices((batches[left_out:, place.index], longest[left_out:]))

    @as_written
    def take(numbers: tf.Tensor, bucket: tf.Tensor) -> Any:
        return targets.split(bucketed.cut(rows.take(numbers), bucket))

    batches = tf.data.Dataset.counter(start=first_epoch).flat_map(batches_of)
    return batches.map(take, tf.data.AUTOTUNE, deterministic=True).prefetch(tf.data.AUTOTUNE)


def eval_batches(
    rows: Rows,
    *,
    targets: Targets,
    batch_size: int,
    multiple: int = 1,
    hosts: Hosts | None = None,
    bucketed: BucketedRows | None = None,
) -> tf.data.Dataset:
    """Return all rows once as batches, in order; the last batch is smaller.

    Args:
        rows: with the targets' columns.
        batch_size: over all hosts.
        multiple: every batch is a multiple of this; the remainder, fewer rows than that, is left out. With
            `batch_size` itself there are only full batches.
        hosts: determines the part of this host; None: there is one host.
        bucketed: the rows' lengths: the shortest rows come first, and a batch is cut to its longest row's
            bucket. None: all batches have the columns' own lengths.
    """
    place = hosts or Hosts()
    used = rows.count // multiple * multiple
    full = used // batch_size
    numbers = np.arange(used, dtype=np.int64)
    of_rows = np.zeros(rows.count, np.int64) if bucketed is None else bucketed.of_rows
    numbers = numbers[np.argsort(of_rows[:used], kind="stable")]
    batches = _portions(numbers[: full * batch_size], batch_size, place, of_rows)
    if rest := used - full * batch_size:
        last = _portions(numbers[-rest:], rest, place, of_rows)
        batches = batches.concatenate(last) if full else last

    @as_written
    def split(part: tf.Tensor, bucket: tf.Tensor) -> Any:
        columns = rows.take(part)
        return targets.split(bucketed.cut(columns, bucket) if bucketed is not None else columns)

    return batches.map(split, tf.data.AUTOTUNE).prefetch(2)


def _portions(numbers: Any, size: int, place: Hosts, of_rows: npt.NDArray[np.int64]) -> tf.data.Dataset:
    """Return this host's part of each batch, and the last bucket of the whole batch."""
    parts = numbers.reshape(-1, place.count, size // place.count)
    buckets = of_rows[parts].max(axis=(1, 2), initial=0)
    return tf.data.Dataset.from_tensor_slices((parts[:, place.index], buckets))


def _parsed_batches(files: Sequence[str], features: Sequence[Feature]) -> Any:
    """Yield parsed portions of all files, in order.

    Raises:
        ComponentError: there is no row, or a row lacks a feature.
    """
    found = False
    for columns in parsed_once(files, features):
        found = True
        yield columns
    if not found:
        raise ComponentError(f"there are no examples in {', '.join(files)}")


def _record(features: Sequence[Feature]) -> np.dtype[Any]:
    return np.dtype([(each.name, each.model_dtype, each.shape) for each in features])
