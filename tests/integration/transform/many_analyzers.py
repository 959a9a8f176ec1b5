"""A preprocessing_fn with a bit of everything that TFT analyzes, by its dotted path."""

import tensorflow as tf
import tensorflow_transform as tft


def preprocessing_fn(inputs):
    amount, key = inputs["amount"], tf.reshape(inputs["key"], [-1])
    words, given = inputs["words"], inputs["text"]
    one = tf.SparseTensor(given.indices, given.values, [given.dense_shape[0], 1])
    text = tf.sparse.to_dense(one, default_value="")
    flat = tf.reshape(amount, [-1])
    known = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)), -1
    )
    scaled = tft.scale_to_z_score(amount)
    pairs = tft.ngrams(words, (1, 2), " ")
    tft.vocabulary(text, vocab_filename="counted", store_frequency=True, file_format="tfrecord_gzip")
    tft.vocabulary(text, weights=tf.ones_like(flat) * 0.5, vocab_filename="weighed")
    tft.vocabulary(inputs["count"], vocab_filename="numbers", frequency_threshold=2)
    tft.vocabulary(text, vocab_filename="reserved", reserved_tokens=["z", "a"], fingerprint_shuffle=True)
    return {
        "z": scaled,
        "min_max": tft.scale_by_min_max(amount),
        "robust": tft.scale_to_gaussian(amount),
        "bucket": tft.bucketize(amount, num_buckets=5),
        "again": tft.scale_to_0_1(tf.abs(scaled) + tf.cast(tft.bucketize(scaled, 3), tf.float32)),
        "z_per_key": tft.scale_to_z_score_per_key(flat, key=key),
        "bucket_per_key": tft.bucketize_per_key(flat, key=key, num_buckets=3),
        "interpolated": tft.apply_buckets_with_interpolation(amount, tft.quantiles(amount, 4, 0.01)),
        "codes": tft.compute_and_apply_vocabulary(words, top_k=4, num_oov_buckets=2, vocab_filename="words"),
        "pairs": pairs,
        "pair_codes": tft.compute_and_apply_vocabulary(pairs, top_k=4, vocab_filename="pairs"),
        "top": tft.compute_and_apply_vocabulary(inputs["count"], top_k=3, num_oov_buckets=1),
        "code": tft.compute_and_apply_vocabulary(text, default_value=-1),
        "hashed": tft.hash_strings(text, 7),
        "known": known.lookup(text),
        "axes": tft.pca(tf.concat([amount, amount**2], 1), 1, tf.float32)[None, :, 0] + 0 * amount,
        "size": tf.fill([tf.size(flat)], tft.size(amount)),
        "mean": tf.fill([tf.size(flat)], tft.mean(inputs["values"])),
        "values": inputs["values"],
        "numbers": inputs["numbers"],
        "words": words,
        "text": given,
    }


def one_name_for_two(inputs):
    tft.vocabulary(inputs["key"], vocab_filename="same")
    tft.vocabulary(inputs["words"], vocab_filename="same")
    return {"amount": inputs["amount"]}


TRACED = []


def only_numbers(inputs):
    """No table and no file: what is analyzed are numbers, some of them many, one of another's result."""
    TRACED.append(1)
    amount = inputs["amount"]
    scaled = tft.scale_to_z_score(amount)
    wide = tf.concat([amount / (1.0 + power) for power in range(20)], 1)
    return {
        "z": scaled,
        "again": tft.scale_to_0_1(tf.abs(scaled)),
        "bucket": tft.bucketize(amount, num_buckets=5),
        "together": 0.01 * wide @ tft.covariance(wide, tf.float32),
        "share": amount / tf.cast(tft.size(amount), tf.float32),
        "count": inputs["count"],
        "unused": inputs["amount"] * 0,
    }
