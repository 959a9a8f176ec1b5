"""The transformations of the workloads that come with the project, each in a name scope of its own.

TensorFlow keeps the tables of a process by the names of their tensors, and TFT names a preprocessing_fn's
second vocabulary as any other's second: two of them whose keys have different types meet in a
process of many tests.
"""

import tensorflow as tf

from workloads.digits import preprocessing as of_digits
from workloads.taxi import preprocessing as of_taxi


def digits(inputs):
    with tf.name_scope("digits"):
        return of_digits.preprocessing_fn(inputs)


def taxi(inputs):
    with tf.name_scope("taxi"):
        return of_taxi.preprocessing_fn(inputs)
