"""The taxi preprocessing: what tf.Transform computes over the training split and applies to all data.

The label is `big_tip`: 1 if the tip is above 20% of the fare. `tips` is used for nothing but the label.
Every output is dense, [rows, 1]: float32 columns have mean 0 and variance 1, int64 columns are categories
counted from 0, whose number is in the transformed schema (`Feature.categories`).
"""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

COMPANIES = 16  # the most frequent ones; the others, single-cab firms, share one category
COMMUNITY_AREAS = 77  # of Chicago, numbered from 1; 0 means outside or unknown
KM_PER_DEGREE = 111.2
LATITUDE_OF_CHICAGO = 41.88


def preprocessing_fn(inputs: dict[str, Any]) -> dict[str, tf.Tensor]:
    """Return the features and the label of a batch of raw trips.

    Args:
        inputs: the columns of schemas/taxi.pbtxt; a dense [rows, 1] tensor if every row has a value, else
            sparse.

    Returns:
        The transformed columns by name, each [rows, 1].
    """
    filled = {name: _filled(column) for name, column in inputs.items()}
    fare = filled["fare"]
    payment = tft.compute_and_apply_vocabulary(
        filled["payment_type"], num_oov_buckets=1, vocab_filename="payment_type"
    )
    company = tft.compute_and_apply_vocabulary(
        filled["company"], top_k=COMPANIES, num_oov_buckets=1, vocab_filename="company"
    )
    return {
        # Amounts span three decades; their logarithms are close to normally distributed.
        "fare_scaled": tft.scale_to_z_score(_logarithm(fare)),
        "miles_scaled": tft.scale_to_z_score(_logarithm(filled["trip_miles"])),
        "seconds_scaled": tft.scale_to_z_score(_logarithm(tf.cast(filled["trip_seconds"], tf.float32))),
        "distance_scaled": tft.scale_to_z_score(_logarithm(_distance_km(filled))),
        "fare_bucket": tft.bucketize(fare, num_buckets=10),
        "payment": payment,
        "company_code": company,
        "hour": _category(filled["trip_start_hour"], categories=24),
        "weekday": _category(filled["trip_start_day"], first=1, categories=7),
        "month": _category(filled["trip_start_month"], first=1, categories=12),
        "pickup_area": _category(filled["pickup_community_area"], categories=COMMUNITY_AREAS + 1),
        "dropoff_area": _category(filled["dropoff_community_area"], categories=COMMUNITY_AREAS + 1),
        "big_tip": _is_big_tip(filled["tips"], fare),
    }


def _filled(column: Any) -> tf.Tensor:
    """Return a dense [rows, 1] column; empty cells become 0, or "" in a column of strings."""
    if not isinstance(column, tf.SparseTensor):
        return column
    shape = [column.dense_shape[0], 1]
    empty = "" if column.dtype == tf.string else 0
    return tf.sparse.to_dense(tf.SparseTensor(column.indices, column.values, shape), empty)


def _logarithm(amounts: tf.Tensor) -> tf.Tensor:
    """Return log(1 + amount), float32; negative amounts, as served rows may have, count as 0 to avoid NaN."""
    return tf.math.log1p(tf.maximum(amounts, 0.0))


def _is_big_tip(tips: tf.Tensor, fare: tf.Tensor) -> tf.Tensor:
    """Return 1 if the tip is above 20% of the fare, else 0. Compares cents: in dollars, 1.17 > 0.2 * 5.85."""
    return tf.cast(tf.round(tips * 100) * 5 > tf.round(fare * 100), tf.int64)


def _category(values: tf.Tensor, *, categories: int, first: int = 0) -> tf.Tensor:
    """Map integers from `first` on to categories 0 .. categories - 1; integers outside map to the nearest."""
    boundaries = [float(first + number) for number in range(1, categories)]
    return tft.apply_buckets(values, [boundaries])


def _distance_km(trip: dict[str, tf.Tensor]) -> tf.Tensor:
    """Return the straight-line distance from pick-up to drop-off; 0 if either is unknown."""
    known = (trip["pickup_latitude"] != 0) & (trip["dropoff_latitude"] != 0)
    north = trip["pickup_latitude"] - trip["dropoff_latitude"]
    east = trip["pickup_longitude"] - trip["dropoff_longitude"]
    east *= tf.math.cos(LATITUDE_OF_CHICAGO * tf.constant(3.14159265 / 180))
    return tf.where(known, KM_PER_DEGREE * tf.sqrt(north**2 + east**2), 0.0)
