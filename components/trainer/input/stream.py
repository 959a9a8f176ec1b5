"""Streams data that does not fit in memory: files interleaved in every epoch, shuffled within a window.

Portions of the files are parsed in turns as they are read and joined to windows of whole batches, and each
window is permuted. Each window leaves out its share of the rows that fill no batch, others in each epoch. The
batches of epoch n depend only on the seed and n. A training that resumes within an epoch reads that epoch's
files from their beginning, and starts to shuffle at the step where it stopped.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature
from slipway.components.trainer.input.parsing import (
    Columns,
    as_written,
    parsed,
    records_of,
    records_of_all,
    wrong_examples,
)
from slipway.components.trainer.input.plan import PARSED_TOGETHER_ROWS, Window, portions
from slipway.components.trainer.input.targets import Targets

FILES_AT_ONCE = 16
"""Files that are read in turns: enough to mix well, few enough to hold their buffers."""


def training_batches(
    files: Sequence[str],
    features: Sequence[Feature],
    *,
    rows: int,
    targets: Targets,
    window: Window,
    seed: int,
    steps_per_epoch: int,
    first_step: int = 0,
) -> tf.data.Dataset:
    """Return endless batches of static shape, `steps_per_epoch` of them per epoch.

    Args:
        files: of this host.
        rows: how many these files hold.
        window: the batch size of this host, and how many batches are shuffled together.
        steps_per_epoch: at most rows // window.batch_size.
        first_step: how many steps to skip at the beginning, >= 0.

    Returns:
        A dataset of what `Targets.split` returns for batches of window.batch_size rows.
    """
    first_epoch, first_step_in_epoch = divmod(first_step, steps_per_epoch)
    planned = portions(window, rows=rows, steps=steps_per_epoch)
    windows_left_out, batches_left_out = divmod(first_step_in_epoch, planned[0].batches)
    rows_of = tf.constant([each.rows for each in planned], tf.int64)
    batches_of = tf.constant([each.batches for each in planned], tf.int64)

    @as_written
    def epoch_batches(epoch: tf.Tensor) -> tf.data.Dataset:
        pair = tf.stack([tf.constant(seed, tf.int64), epoch])
        order = tf.random.experimental.stateless_shuffle(tf.constant(list(files)), seed=pair)
        parts = tf.data.Dataset.from_tensor_slices(order).interleave(
            lambda file: parsed(records_of(file), features, rows=PARSED_TOGETHER_ROWS),
            cycle_length=min(FILES_AT_ONCE, len(files)),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

        def only_first(number: int) -> tf.Tensor:
            return tf.where(epoch == first_epoch, tf.constant(number, tf.int64), tf.constant(0, tf.int64))

        windows = parts.rebatch(rows_of).enumerate().skip(only_first(windows_left_out))
        batches = windows.flat_map(lambda number, columns: shuffled(columns, epoch, number))
        return batches.skip(only_first(batches_left_out))

    def shuffled(columns: Columns, epoch: tf.Tensor, number: tf.Tensor) -> tf.data.Dataset:
        steps = tf.gather(batches_of, number)
        # Each window of each epoch has another seed; files are shuffled with (seed, epoch) itself.
        pair = tf.stack([tf.constant(seed, tf.int64) + (number + 1) * 2**32, epoch])
        order = tf.random.experimental.stateless_shuffle(tf.range(tf.gather(rows_of, number)), seed=pair)
        numbers = tf.reshape(order[: steps * window.batch_size], [steps, window.batch_size])
        return tf.data.Dataset.from_tensor_slices(numbers).map(
            lambda batch: {name: tf.gather(values, batch) for name, values in columns.items()}
        )

    epochs = tf.data.Dataset.counter(start=first_epoch)
    batches = epochs.flat_map(epoch_batches)
    return batches.map(_static(features, targets, window.batch_size)).prefetch(tf.data.AUTOTUNE)


def eval_batches(
    files: Sequence[str], features: Sequence[Feature], *, targets: Targets, batch_size: int, static: bool
) -> tf.data.Dataset:
    """Return all rows once as batches, in order.

    Args:
        files: of this host.
        batch_size: of this host.
        static: full batches only; otherwise the last one may be smaller.
    """
    portions = parsed(records_of_all(files), features, rows=batch_size)
    if not static:
        return portions.map(as_written(targets.split)).prefetch(tf.data.AUTOTUNE)
    is_full = as_written(lambda columns: tf.shape(columns[features[0].name])[0] == batch_size)
    return portions.filter(is_full).map(_static(features, targets, batch_size)).prefetch(tf.data.AUTOTUNE)


def require_examples(files: Sequence[str], features: Sequence[Feature]) -> None:
    """Parse the first portion, to report errors before the training starts.

    Raises:
        ComponentError: there is no example, or one lacks a feature.
    """
    try:
        for _ in parsed(records_of_all(files), features, rows=PARSED_TOGETHER_ROWS).take(1):
            return
    except tf.errors.InvalidArgumentError as error:
        raise wrong_examples(error) from error
    raise ComponentError(f"there are no examples in {', '.join(files)}")


def _static(features: Sequence[Feature], targets: Targets, batch_size: int) -> Callable[[Columns], Any]:
    shapes = {each.name: (batch_size, *each.shape) for each in features}

    @as_written
    def shaped(columns: Columns) -> Any:
        return targets.split({name: tf.ensure_shape(columns[name], shape) for name, shape in shapes.items()})

    return shaped
