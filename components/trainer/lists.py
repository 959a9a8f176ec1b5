"""Handles columns with any number of values per row: pads them to the fixed number that models need."""

from typing import Any

import tensorflow as tf


def padded_lists(column: Any, *, length: int, padding: float | str) -> tf.Tensor:
    """Return the first values of each row, padded to a fixed length.

    Args:
        column: a column in a preprocessing_fn, sparse or ragged if rows hold lists or may be empty; or
            derived from one, such as the words of a text.
        length: values per row, >= 1; further values are dropped.
        padding: a value of the column's type. With a length of 1, it fills the empty cells of a column.
    """
    return as_ragged(column).to_tensor(padding, shape=[None, length])


def as_ragged(column: Any) -> tf.RaggedTensor:
    """Return a column in a preprocessing_fn, sparse, ragged or dense, as a ragged one."""
    if isinstance(column, tf.SparseTensor):
        return tf.RaggedTensor.from_sparse(column)
    return column if isinstance(column, tf.RaggedTensor) else tf.RaggedTensor.from_tensor(column)


def rows_of_values(lists: tf.RaggedTensor) -> tf.Tensor:
    """Return the row of each value of lists, int [values], for `tf.math.unsorted_segment_sum` and others.

    TensorFlow's own, which `tf.reduce_sum` and others of a ragged column use, takes memory as if each row
    were as long as the longest: a request of a megabyte could take all of a machine's.
    """
    ends = lists.row_splits[1:]
    places = tf.range(tf.size(lists.values, ends.dtype))
    return tf.searchsorted(ends, places, side="right", out_type=ends.dtype)


def until_last(present: tf.Tensor) -> tf.Tensor:
    """Return a mask of the cells up to each row's last one that is not empty; those after it are padding.

    An empty text or NaN before it is a value of the list, as it was in training: without it, those behind
    would move to its place.

    Args:
        present: bool [rows, cells], false for cells that are empty.
    """
    return tf.cumsum(tf.cast(present, tf.int32), axis=1, reverse=True) > 0
