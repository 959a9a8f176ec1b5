"""Hashes the words and word pairs of free text, or the values of lists, for a preprocessing_fn."""

from typing import Any

import tensorflow as tf
from tensorflow_transform import schema_inference

from slipway.components.trainer.lists import as_ragged

NGRAM_CODES = 2**18
"""Number of codes for hashed words, pairs of words and values, 1 .. NGRAM_CODES - 1, and for none, 0."""
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
    # Without a limit, a text of 100 MB of short words would take gigabytes for words that are dropped anyway.
    # What is left of a text after the last split is none of the first words.
    words = tf.strings.split(tf.strings.regex_replace(lower, _NO_WORD, " "), maxsplit=size)[:, :size]
    return _coded(tf.strings.ngrams(words, (1, 2)), size, NGRAM_CODES)


def hashed_values(column: Any, *, size: int, codes: int = NGRAM_CODES) -> tf.Tensor:
    """Return the values of each row's list as numbers, such as the tags of a film or the items of a basket.

    A value is hashed as a whole, so "new york" and "york" have nothing in common. An empty text is none: in a
    request it cannot be told from padding.

    Args:
        column: strings or integers, sparse, ragged or dense, any number per row.
        size: numbers per row; further values are dropped.
        codes: how many there are, > 255, so that boosted trees read the feature as they do a text's words.
            About n / (2 codes) of n different values share their code with another.

    Returns:
        int64 [rows, size], a feature with `codes` categories, padded with 0.
    """
    lists = as_ragged(column)
    if lists.dtype != tf.string:
        lists = tf.ragged.map_flat_values(tf.strings.as_string, lists)
    return _coded(lists, size, codes)


def _coded(texts: tf.RaggedTensor, size: int, codes: int) -> tf.Tensor:
    none = tf.constant(0, tf.int64)
    hashed = tf.ragged.map_flat_values(
        lambda each: tf.where(tf.equal(each, ""), none, tf.strings.to_hash_bucket_fast(each, codes - 1) + 1),
        texts,
    )
    found = hashed.to_tensor(0, shape=[None, size])
    # As tft.apply_buckets does, record the number of categories, so that the Trainer knows it.
    schema_inference.set_tensor_schema_override(
        found, tf.constant(0, tf.int64), tf.constant(codes - 1, tf.int64)
    )
    return found
