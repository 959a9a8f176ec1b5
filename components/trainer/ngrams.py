"""Hashes the words and word pairs of free text, for a preprocessing_fn."""

from typing import Any

import tensorflow as tf
from tensorflow_transform import schema_inference

NGRAM_CODES = 2**18
"""Number of codes for hashed words and pairs of words, 1 .. NGRAM_CODES - 1, and for no word, 0."""
_NO_WORD = r"[^\pL\pM\pN]+"


def hashed_ngrams(texts: Any, *, size: int) -> tf.Tensor:
    """Return the words and pairs of neighbouring words of each text as numbers, ignoring case.

    Words consist of letters and digits of any script; everything else separates them. There is no vocabulary:
    nothing has to be computed over the data, and the model contains no text.

    Args:
        texts: UTF-8, string [rows, 1] or [rows]; "" has no words.
        size: numbers per row, words first, then pairs; the rest is dropped.

    Returns:
        int64 [rows, size], a feature with NGRAM_CODES categories, padded with 0.
    """
    lower = tf.strings.lower(tf.reshape(texts, [-1]), encoding="utf-8")
    words = tf.strings.split(tf.strings.regex_replace(lower, _NO_WORD, " "))
    codes = tf.ragged.map_flat_values(
        lambda each: tf.strings.to_hash_bucket_fast(each, NGRAM_CODES - 1) + 1,
        tf.strings.ngrams(words, (1, 2)),
    )
    found = codes.to_tensor(0, shape=[None, size])
    # As tft.apply_buckets does, record the number of categories, so that the Trainer knows it.
    schema_inference.set_tensor_schema_override(
        found, tf.constant(0, tf.int64), tf.constant(NGRAM_CODES - 1, tf.int64)
    )
    return found
