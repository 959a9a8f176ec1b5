"""Parses TFRecords into batches. Parsing whole batches, never single records, is 13 times faster."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import tensorflow as tf

from slipway.components import example_records
from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature, beyond_int32, refused_value
from slipway.components.trainer.loss_labels import LabelRange
from slipway.components.trainer.pixels import model_input

Columns = dict[str, tf.Tensor]
_TOGETHER_ROWS = 4096
_Function = TypeVar("_Function", bound=Callable[..., Any])


def as_written(function: _Function) -> _Function:
    """Return a function for tf.data that AutoGraph leaves as it is: it must not branch on tensors.

    To convert all functions of the input costs each training half a second.
    """
    left: _Function = tf.autograph.experimental.do_not_convert(function)
    return left


def parsed_once(files: Sequence[str], features: Sequence[Feature]) -> Iterator[Columns]:
    """Yield the rows of all files in order, parsed, some thousands at a time; `parsed` takes twice as long.

    Args:
        files: names ending in .gz are gzip, others are not compressed.

    Raises:
        ComponentError: a compressed file is damaged, an example lacks a feature, or a whole number does not
            fit into 32 bits.
    """
    columns = tf.function(
        _parser(features), input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
    )
    try:
        for file in files:
            if file.endswith(".gz"):
                for records in example_records.records(file):
                    with tf.device("CPU:0"):
                        found = columns(tf.constant(records, tf.string))
                    yield found
            else:
                yield from parsed(records_of(tf.constant(file)), features, rows=_TOGETHER_ROWS)
    except tf.errors.InvalidArgumentError as error:
        raise wrong_examples(error) from error


def parsed(records: tf.data.Dataset, features: Sequence[Feature], *, rows: int) -> tf.data.Dataset:
    """Parse records, `rows` at a time, to a tensor per feature, [rows, *feature.shape] of `model_dtype`.

    Reading the rows raises TensorFlow's error for one that lacks a feature, or holds a whole number that does
    not fit into 32 bits: see `wrong_examples`.
    """
    return records.batch(rows).map(_parser(features), tf.data.AUTOTUNE, deterministic=True)


def parsed_records(records: Sequence[bytes], features: Sequence[Feature]) -> Columns:
    """Return some records, parsed.

    Raises:
        ComponentError: an example lacks a feature, or a whole number does not fit into 32 bits.
    """
    try:
        return _parser(features)(tf.constant(records, tf.string))
    except tf.errors.InvalidArgumentError as error:
        raise wrong_examples(error) from error


def _parser(features: Sequence[Feature]) -> Callable[[tf.Tensor], Columns]:
    spec = {
        each.name: tf.io.FixedLenFeature([], tf.string)
        if each.dtype == "uint8"
        else tf.io.FixedLenFeature(each.shape, each.dtype)
        for each in features
    }

    @as_written
    def columns(batch: tf.Tensor) -> Columns:
        found = tf.io.parse_example(batch, spec)
        for each in features:
            if each.may_exceed_int32:
                require_int32(found[each.name], each)
        return {each.name: model_input(found[each.name], each) for each in features}

    return columns


def require_int32(column: tf.Tensor, feature: Feature) -> None:
    """Fail with TensorFlow's error, in the words of `beyond_int32`, if a whole number needs more bits."""
    beyond = tf.boolean_mask(column, (column < tf.int32.min) | (column > tf.int32.max))
    before, after = beyond_int32(feature.name)
    first = tf.strings.reduce_join(tf.strings.as_string(beyond[:1]))
    tf.debugging.Assert(tf.size(beyond) == 0, [tf.strings.join([before, first, after])])


@as_written
def records_of(file: tf.Tensor) -> tf.data.Dataset:
    """Return the records of one file, which is gzip if its name ends in .gz."""
    kind = tf.where(tf.strings.regex_full_match(file, r"(?s).*\.gz"), "GZIP", "")
    return tf.data.TFRecordDataset(file, compression_type=kind)


def records_of_all(files: Sequence[str]) -> tf.data.Dataset:
    """Return the records of all files, one file after the other."""
    return tf.data.Dataset.from_tensor_slices(list(files)).flat_map(records_of)


def count_records(
    files: Sequence[str], labels: Sequence[Feature], weight: Feature | None = None
) -> tuple[int, dict[str, LabelRange]]:
    """Count the records in the files, and return what the columns of their labels hold.

    Args:
        weight: the column with each row's weight; the labels of rows of weight 0 do not count. None: all do.

    Raises:
        ComponentError: an example lacks a label, or one does not fit into 32 bits.
    """
    read = [*labels] if weight is None else [*labels, weight]
    batches = tf.data.Dataset.from_tensor_slices(list(files)).interleave(
        as_written(lambda file: parsed(records_of(file), read, rows=_TOGETHER_ROWS)),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=False,
    )
    rows, found = 0, {each.name: LabelRange() for each in labels}
    try:
        for columns in batches.as_numpy_iterator():
            rows += len(columns[labels[0].name])
            weights = None if weight is None else columns[weight.name]
            found = {name: each.with_values(columns[name], weights) for name, each in found.items()}
    except tf.errors.InvalidArgumentError as error:
        raise wrong_examples(error) from error
    return rows, found


def wrong_examples(error: Any) -> ComponentError:
    """Translate a parser's error for the user."""
    return refused_value(error.message) or ComponentError(
        f"an example does not have the transformed features: {error.message.splitlines()[0]}"
    )
