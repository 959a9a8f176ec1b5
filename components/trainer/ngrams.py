"""Hashes the words and word pairs of free text, for a preprocessing_fn."""

from typing import Any

import tensorflow as tf
from tensorflow_transform import schema_inference

NGRAM_CODES = 2**18
"""Of words and pairs of words, hashed: 1 .. NGRAM_CODES - 1; 0 stands for none."""
_NO_WORD = r"[^\pL\pM\pN]+"


def hashed_ngrams(texts: Any, *, size: int) -> tf.Tensor:
    """The words of each text and its pairs of neighbouring words, whatever their case, each as a number.

    Words are letters and digits of any script; all else divides them. There is no vocabulary: nothing has to
    be computed over the data, and no text is kept in the model.

    Args:
        texts: UTF-8, string [rows, 1] or [rows]; "" has no words.
        size: numbers a row: words come first, then the pairs; what is beyond is left out.

    Returns:
        int64 [rows, size], a feature with NGRAM_CODES categories; 0 behind the last.
    """
    lower = tf.strings.lower(tf.reshape(texts, [-1]), encoding="utf-8")
    words = tf.strings.split(tf.strings.regex_replace(lower, _NO_WORD, " "))
    codes = tf.ragged.map_flat_values(
        lambda each: tf.strings.to_hash_bucket_fast(each, NGRAM_CODES - 1) + 1,
        tf.strings.ngrams(words, (1, 2)),
    )
    found = codes.to_tensor(0, shape=[None, size])
    # As tft.apply_buckets says how many categories there are, so that the Trainer knows them.
    schema_inference.set_tensor_schema_override(
        found, tf.constant(0, tf.int64), tf.constant(NGRAM_CODES - 1, tf.int64)
    )
    return found
