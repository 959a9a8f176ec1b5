"""Opens the examples of a split: in memory if they fit, otherwise in a file or as a stream."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from slipway.components.available_memory import available_memory_bytes
from slipway.components.errors import ComponentError
from slipway.components.trainer.buckets import KEY
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.features import Feature
from slipway.components.trainer.input import arrays, stream
from slipway.components.trainer.input.parsing import Columns, count_records
from slipway.components.trainer.input.plan import (
    MEMORY_SHARE,
    block_steps,
    files_of_host,
    row_bytes,
    window,
)
from slipway.components.trainer.input.targets import Targets
from slipway.components.trainer.input.weights import require_weights_on_both_sides
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.loop.early_stopping import require_both_classes
from slipway.components.trainer.loss_labels import LabelRange
from slipway.components.trainer.row_lengths import LOOKED_AT_TOGETHER_ROWS

_COMPARED_ROWS = 8


class Examples(Protocol):
    """The examples of one split.

    Attributes:
        count: examples on all hosts.
        words: where the examples are, for people.
        order: names the order of the rows within an epoch, for people.
        full_batches: full batches in one pass.
        needed: the fewest examples that can be evaluated, >= 1.
    """

    count: int
    words: str
    order: str
    full_batches: int
    needed: int

    def training(
        self, *, steps_per_epoch: int, first_step: int, seed: int, in_one_call: int | None = None
    ) -> tf.data.Dataset:
        """Return endless shuffled batches, starting at a step; in blocks if one call takes several."""

    def evaluation(self) -> tf.data.Dataset:
        """Return the batches of one pass, in order."""

    def label_range(self, column: str) -> LabelRange:
        """Return what a label's column holds in the rows whose weight is not 0."""


def open_examples(files: Sequence[str], job: TrainingJob, devices: Devices, *, split: str) -> Examples:
    """Load a split, or count its examples to stream them.

    Args:
        files: of all hosts; names ending in .gz are gzip.
        split: the name of the split, for the cache file.

    Raises:
        ComponentError: there is no example, an example lacks a feature, or the examples do not fit in memory
            as `train.input.cache: memory` requires.
    """
    cache = job.input.cache
    limit = round(available_memory_bytes() * MEMORY_SHARE)
    if cache in ("auto", "memory"):
        rows = arrays.load_rows(files, job.features, limit_bytes=limit)
        # All hosts keep them, or none does: else they would take different parts, and wait for each other.
        if devices.min_over_hosts(int(rows is not None)) and rows is not None:
            return CachedExamples(rows, job, devices)
        if cache == "memory":
            where = " of a host" if devices.hosts.count > 1 else ""
            limited = f"more than {limit / 2**20:,.0f} MB, " if rows is None else "more than "
            raise ComponentError(
                f"the {split} examples are {limited}a quarter of the free memory{where}",
                hint="set train.input.cache to auto, file or none",
            )
    if cache == "file":
        held = Path(job.output_dir, f"{split}.rows")
        arrays.FileRows.write(held, files, job.features)
        return CachedExamples(arrays.FileRows(held, job.features), job, devices)
    if job.buckets.lengths:
        raise ComponentError(
            f"{KEY} needs rows in memory or in a file, and the {split} examples are more than "
            f"{limit / 2**20:,.0f} MB, a quarter of the free memory",
            hint="set train.input.cache to file",
        )
    return StreamedExamples(files, job, devices)


class CachedExamples:
    """Rows with random access; every host has all of them and takes its part of each batch."""

    order = "all rows shuffled, in memory or a file"

    def __init__(self, rows: arrays.Rows, job: TrainingJob, devices: Devices) -> None:
        self._rows, self._job, self._devices = rows, job, devices
        self.count, self.words = rows.count, rows.words
        self.full_batches = rows.count // job.batch_size
        self.needed = devices.divisor
        self._bucketed = arrays.BucketedRows.of(rows, job.buckets)
        if self._bucketed is not None:
            self.words += f"; {self._bucketed.words}"

    @property
    def shortest(self) -> Columns:
        """A few rows of the first bucket that has any, with all columns at their own lengths."""
        of_rows = self._bucketed.of_rows if self._bucketed else np.zeros(self.count, np.int64)
        return self._rows.take(tf.constant(np.argsort(of_rows, kind="stable")[:_COMPARED_ROWS]))

    def training(
        self, *, steps_per_epoch: int, first_step: int, seed: int, in_one_call: int | None = None
    ) -> tf.data.Dataset:
        """Return batches in another permutation of all rows in every epoch."""
        batch_bytes = self._job.batch_size * self._rows.row_bytes
        several = in_one_call if in_one_call != 1 else None
        batches = arrays.training_batches(
            self._rows,
            targets=Targets.for_training(self._job),
            batch_size=self._job.batch_size,
            seed=seed,
            steps_per_epoch=steps_per_epoch,
            first_step=first_step,
            hosts=self._devices.hosts,
            block_steps=block_steps(several, batch_bytes=batch_bytes) if several else None,
            bucketed=self._bucketed,
        )
        # Small batches are taken several at a time, even if each is a block by itself.
        return batches.batch(1, drop_remainder=True).prefetch(2) if in_one_call == 1 else batches

    def label_range(self, column: str) -> LabelRange:
        """Return what a label's column holds; of held out rows, and of the others, that of all of them."""
        found, values = LabelRange(), self._rows.column(column)
        weights = None if self._job.weight is None else self._rows.column(self._job.weight)
        for first in range(0, len(values), LOOKED_AT_TOGETHER_ROWS):
            part = slice(first, first + LOOKED_AT_TOGETHER_ROWS)
            found = found.with_values(values[part], None if weights is None else weights[part])
        return found

    def held_out(self) -> tuple["CachedExamples", "CachedExamples"]:
        """Return the examples to train on, and those held out for `train.early_stopping`.

        These are whole groups, if rows have any.

        Raises:
            ComponentError: in one of the two no row weighs anything; or the held out ones are of one class,
                and the metric tells two apart.
        """
        job, rows = self._job, self._rows
        groups = arrays.groups_of(job.train_files, job.group)
        parts = arrays.held_out(rows, share=job.early_stopping.share, seed=job.seed, groups=groups)
        held = parts[1].numbers
        if job.weight is not None:
            weights = rows.column(job.weight)
            require_weights_on_both_sides(weights, held, name=job.weight)
            held = held[weights.reshape(-1)[held] != 0]
        if isinstance(job.label, str) and job.label_shapes[job.label] == (1,):
            labels = rows.column(job.label)[held].reshape(-1)
            require_both_classes(labels, name=job.label, metric=job.checkpoint.best_metric)
        train, judged = (CachedExamples(part, self._job, self._devices) for part in parts)
        return train, judged

    def evaluation(self) -> tf.data.Dataset:
        """Return all rows, except the few that cannot be divided among the devices."""
        job, devices = self._job, self._devices
        static = devices.has_static_shapes_only and self.full_batches > 0
        return arrays.eval_batches(
            self._rows,
            targets=Targets.for_evaluation(job),
            batch_size=job.batch_size,
            multiple=job.batch_size if static else devices.divisor,
            hosts=devices.hosts,
            bucketed=self._bucketed,
        )


def open_splits(job: TrainingJob, devices: Devices) -> tuple[Examples, Examples | None]:
    """Return the training examples, and the examples that each epoch is evaluated on, if any.

    The latter are the eval split or, if the training may stop early, a part of the train split: then the eval
    split does not influence the training that it judges.

    Raises:
        ComponentError: as for `open_examples`; or the training may stop early, but its rows are streamed, so
            none can be held out, or what is held out could measure nothing.
    """
    train = open_examples(job.train_files, job, devices, split="train")
    if job.early_stopping.patience is None:
        held = open_examples(job.eval_files, job, devices, split="eval") if job.eval_files else None
        return train, held
    if not isinstance(train, CachedExamples):
        raise ComponentError(
            "train.early_stopping needs rows in memory or in a file, but these are streamed",
            hint="set train.input.cache to file, or train.early_stopping.patience to null",
        )
    return train.held_out()


class StreamedExamples:
    """Examples that are read again in every pass; every host reads its own files."""

    def __init__(self, files: Sequence[str], job: TrainingJob, devices: Devices) -> None:
        hosts = devices.hosts
        self._files = files_of_host(files, index=hosts.index, count=hosts.count)
        self._features: tuple[Feature, ...] = job.features
        self._job, self._devices = job, devices
        stream.require_examples(self._files, self._features)
        self._window = window(
            job.batch_size // hosts.count,
            job.input.shuffle_rows // hosts.count,
            row_bytes=row_bytes(job.features),
        )
        labels = [each for each in job.features if each.name in job.labels]
        weight = next((each for each in job.features if each.name == job.weight), None)
        self._own, self._label_ranges = count_records(self._files, labels, weight)
        # All hosts take as many steps as the host with the fewest examples can.
        self.full_batches = devices.min_over_hosts(self._own // self._window.batch_size)
        self.count = devices.sum_over_hosts(self._own)
        if hosts.count > 1 and not self.full_batches:
            raise ComponentError(
                f"one of the {hosts.count} hosts has less than its share of a batch, "
                f"{self._window.batch_size}, of the {self.count:,} examples",
                hint="a smaller train.batch_size, files of equal size, or train.input.cache: memory or file, "
                "where each host takes its part of all rows",
            )
        self._is_static = devices.is_distributed or devices.has_static_shapes_only
        self.needed = job.batch_size if self._is_static else 1
        by = f" by {hosts.count} hosts" if hosts.count > 1 else ""
        self.order = f"streamed{by}, the rows that fill no batch left out of all windows alike"
        self.words = f"{self.count:,} examples streamed, shuffled by {self._window.rows * hosts.count:,}"

    def training(
        self, *, steps_per_epoch: int, first_step: int, seed: int, in_one_call: int | None = None
    ) -> tf.data.Dataset:
        """Return batches with another order of files in every epoch, shuffled within each window."""
        batches = stream.training_batches(
            self._files,
            self._features,
            rows=self._own,
            targets=Targets.for_training(self._job),
            window=self._window,
            seed=seed,
            steps_per_epoch=steps_per_epoch,
            first_step=first_step,
        )
        # Larger blocks would gain nothing: most of the time goes into parsing.
        return batches.batch(1, drop_remainder=True) if in_one_call else batches

    def evaluation(self) -> Any:
        """Return all rows; only full batches if devices divide them or compile for one shape."""
        batches = stream.eval_batches(
            self._files,
            self._features,
            targets=Targets.for_evaluation(self._job),
            batch_size=self._window.batch_size,
            static=self._is_static,
        )
        # All hosts stop after the same number of batches, so that none waits for a host with fewer.
        return batches.take(self.full_batches) if self._devices.hosts.count > 1 else batches

    def label_range(self, column: str) -> LabelRange:
        """Return what a label's column holds in the files of this host."""
        return self._label_ranges[column]


def input_advice(job: TrainingJob, *, rows: int) -> str:
    """Describe what would deliver the examples faster; "" if they are already in memory."""
    needed = row_bytes(job.features) * rows
    fits = needed <= available_memory_bytes() * MEMORY_SHARE
    size = f"{needed / 2**20:,.0f} MB"
    if job.input.cache in ("auto", "memory") and fits:
        return ""
    return f"cache: {'memory' if fits else 'file'} would hold the set in {size}"
