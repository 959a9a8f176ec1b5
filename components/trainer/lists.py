"""Pads columns with any number of values a row to a fixed number, as models need them."""

from typing import Any

import tensorflow as tf


def padded_lists(column: Any, *, length: int, padding: float | str) -> tf.Tensor:
    """The first values of each row, padded to a fixed length.

    Args:
        column: a column of a preprocessing_fn, sparse or ragged where rows have lists or may be empty; or
            made of one, such as the words of a text.
        length: values a row, >= 1; what is beyond is left out.
        padding: of the column's type. With a length of 1 it fills the empty cells of a column.

    Returns:
        [rows, length].
    """
    if isinstance(column, tf.SparseTensor):
        column = tf.RaggedTensor.from_sparse(column)
    elif not isinstance(column, tf.RaggedTensor):
        column = tf.RaggedTensor.from_tensor(column)
    return column.to_tensor(padding, shape=[None, length])
