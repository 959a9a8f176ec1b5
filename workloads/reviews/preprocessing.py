"""The reviews preprocessing: a text becomes a fixed number of codes of its words and pairs of words."""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from slipway.components.trainer.lists import padded_lists

CODES = 512
"""Codes per row: first the words, then the pairs of adjacent words; the rest is cut off. The median text of
TFX's example has 170 words."""
VOCABULARY = 12_000
"""The number of words and pairs with a separate code: the most frequent ones in training."""
PADDING = "<pad>"
"""Fills the row after the last pair. It is not a word, which has letters and digits only; its code is 0."""

_NO_WORD = r"[^\pL\pM\pN]+"


def preprocessing_fn(inputs: dict[str, Any]) -> dict[str, tf.Tensor]:
    """Return the feature and the label of a batch of reviews.

    Args:
        inputs: `text`, sparse strings, at most one per row, and `label`, int64 [rows, 1], 0 or 1; see
            schemas/reviews.pbtxt.

    Returns:
        `words`, int64 [rows, CODES], padded with 0, all zeros for an empty text; the shape is the same for
        texts of any length, so a TPU compiles once. `good`, int64 [rows, 1], the label.
    """
    texts = padded_lists(inputs["text"], length=1, padding="")
    lower = tf.strings.lower(tf.squeeze(texts, axis=1), encoding="utf-8")
    words = tf.strings.split(tf.strings.regex_replace(lower, _NO_WORD, " "))
    pieces = padded_lists(tf.strings.ngrams(words, (1, 2)), length=CODES, padding=PADDING)
    codes = tft.compute_and_apply_vocabulary(
        pieces, top_k=VOCABULARY, num_oov_buckets=1, reserved_tokens=[PADDING], vocab_filename="words"
    )
    return {"words": codes, "good": inputs["label"]}
