"""The input of training: files to parsed batches, held in memory, in a new order every epoch.

Whole batches are parsed, never single records (13 times faster). The rows of all files then stay in memory
as one tensor a feature, and an epoch is a random permutation of their numbers: the shuffle is over the whole
set, costs 0.3 microseconds a row, and the batches of epoch n depend on the seed and n alone.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from components.errors import ComponentError
from components.trainer.features import Feature
from components.trainer.job import TrainingJob

PARSED_TOGETHER_ROWS = 4096
"""Rows of one call of the parser: large enough that its fixed cost vanishes, small against memory."""


def load_rows(files: Sequence[str], features: Sequence[Feature]) -> dict[str, tf.Tensor]:
    """Reads and parses TFRecord files of tf.Examples into memory.

    Args:
        files: names ending in .gz are gzip, others are not compressed.
        features: the columns to read.

    Returns:
        One tensor a feature, [rows, *feature.shape], float32 or int32.

    Raises:
        ComponentError: the files hold no row, or a row lacks a feature.
    """
    spec = {f.name: tf.io.FixedLenFeature(f.shape, f.dtype) for f in features}
    batches = (
        tf.data.Dataset.from_tensor_slices(list(files))
        .flat_map(_records)
        .batch(PARSED_TOGETHER_ROWS)
        .map(lambda records: _narrow(tf.io.parse_example(records, spec)), tf.data.AUTOTUNE)
    )
    try:
        parsed = list(batches)
    except tf.errors.InvalidArgumentError as error:
        raise ComponentError(
            f"an example does not have the transformed features: {error.message.splitlines()[0]}"
        ) from error
    if not parsed:
        raise ComponentError(f"there are no examples in {', '.join(files)}")
    return {name: tf.concat([batch[name] for batch in parsed], axis=0) for name in spec}


def training_batches(
    rows: dict[str, tf.Tensor], job: TrainingJob, *, steps_per_epoch: int, first_step: int = 0
) -> tf.data.Dataset:
    """Batches of static shape, `steps_per_epoch` of them an epoch, epoch after epoch without end.

    What does not fill a batch at the end of an epoch is left out of that epoch; another order brings other
    rows there in the next.

    Args:
        rows: as `load_rows` returns them, with the label.
        job: gives the label, the batch size and the seed.
        steps_per_epoch: at most `full_batches(rows, job)`.
        first_step: how many steps are left out at the beginning, >= 0.

    Returns:
        A dataset of (features by name [batch_size, ...], label float32 [batch_size, 1]).
    """
    steps = steps_per_epoch
    total = row_count(rows)
    first_epoch, first_step_in_epoch = divmod(first_step, steps)

    def epoch_order(epoch: tf.Tensor) -> tf.data.Dataset:
        seed = tf.stack([tf.constant(job.seed, tf.int64), epoch])
        order = tf.random.experimental.stateless_shuffle(tf.range(total), seed=seed)
        left_out = tf.where(epoch == first_epoch, first_step_in_epoch, 0)
        batches = tf.reshape(order[: steps * job.batch_size], [steps, job.batch_size])
        return tf.data.Dataset.from_tensor_slices(batches[left_out:])

    def take(numbers: tf.Tensor) -> Any:
        return _split_label({name: tf.gather(values, numbers) for name, values in rows.items()}, job)

    epochs = tf.data.Dataset.counter(start=first_epoch)
    return epochs.flat_map(epoch_order).map(take, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def eval_batches(rows: dict[str, tf.Tensor], job: TrainingJob) -> tf.data.Dataset:
    """All rows once, in order, the last batch as small as it comes: (features by name, label)."""
    batches = tf.data.Dataset.from_tensor_slices(rows).batch(job.batch_size)
    return batches.map(lambda batch: _split_label(batch, job)).prefetch(tf.data.AUTOTUNE)


def full_batches(rows: dict[str, tf.Tensor], job: TrainingJob) -> int:
    """Full batches in one pass over the rows.

    Raises:
        ComponentError: there are fewer rows than one batch needs.
    """
    total = row_count(rows)
    if total < job.batch_size:
        raise ComponentError(
            f"train.batch_size ({job.batch_size}) is larger than the {total} training examples",
            hint=f"set train.batch_size to {total} or less",
        )
    return total // job.batch_size


def row_count(rows: dict[str, tf.Tensor]) -> int:
    """Number of rows in what `load_rows` returned."""
    return int(next(iter(rows.values())).shape[0])


def _records(file: tf.Tensor) -> tf.data.Dataset:
    """The records of one file, gzip by its suffix."""
    kind = tf.where(tf.strings.regex_full_match(file, r".*\.gz"), "GZIP", "")
    return tf.data.TFRecordDataset(file, compression_type=kind)


def _narrow(parsed: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """int64 to int32: tf.Examples know only the former, accelerators want the latter."""
    return {
        name: tf.cast(values, tf.int32) if values.dtype == tf.int64 else values
        for name, values in parsed.items()
    }


def _split_label(batch: dict[str, tf.Tensor], job: TrainingJob) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Takes the label out of a batch, as float32."""
    features = dict(batch)
    label = features.pop(job.label)
    return features, tf.cast(label, tf.float32)
