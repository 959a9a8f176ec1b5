"""Writes tf.Examples for tests."""

import tensorflow as tf


def example(**columns):
    """Return a serialised tf.Example of lists of values; None is a Feature without a list."""
    features = {}
    for name, values in columns.items():
        if values is None:
            features[name] = tf.train.Feature()
        elif values and isinstance(values[0], bytes):
            features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        elif values and isinstance(values[0], int):
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        else:
            features[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(
        deterministic=True
    )
