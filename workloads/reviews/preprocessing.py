"""A text to the codes of its words and pairs of words, as many in each row; a label to good or bad."""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from slipway.components.trainer.lists import padded_lists

CODES = 512
"""Of a row: its words, then its pairs of neighbours; more are cut off. TFX's median has 170 words."""
VOCABULARY = 12_000
"""How many words and pairs have a code of their own: those that are most frequent in training."""
PADDING = "<pad>"
"""Behind the last one; no word, as a word has letters and digits only. Its code is 0."""

_NO_WORD = r"[^\pL\pM\pN]+"


def preprocessing_fn(inputs: dict[str, Any]) -> dict[str, tf.Tensor]:
    """Returns the feature and the label of a batch of reviews.

    Args:
        inputs: `text`, sparse strings, at most one a row, and `label`, int64 [rows, 1], 0 or 1; see
            schemas/reviews.pbtxt.

    Returns:
        `words`, int64 [rows, CODES], 0 behind the last one, all zeros for an empty text: the same shape for
        texts of any length, for which a TPU compiles once; `good`, int64 [rows, 1], the label.
    """
    texts = padded_lists(inputs["text"], length=1, padding="")
    lower = tf.strings.lower(tf.squeeze(texts, axis=1), encoding="utf-8")
    words = tf.strings.split(tf.strings.regex_replace(lower, _NO_WORD, " "))
    pieces = padded_lists(tf.strings.ngrams(words, (1, 2)), length=CODES, padding=PADDING)
    codes = tft.compute_and_apply_vocabulary(
        pieces, top_k=VOCABULARY, num_oov_buckets=1, reserved_tokens=[PADDING], vocab_filename="words"
    )
    return {"words": codes, "good": inputs["label"]}
