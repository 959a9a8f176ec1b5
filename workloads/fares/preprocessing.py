"""The fares preprocessing: the features of a trip known at its start, two labels and a row weight.

Nothing that the meter shows at the end (fare, tips, miles, seconds) becomes a feature: these columns are in
`transform.pass_through`. Every output is dense, [rows, 1].
"""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

CATEGORIES = {"payment": ("payment_type", 5), "company_code": ("company", 16)}
"""By feature: the column, and how many of its values get a separate code."""
WHOLE_NUMBERS = {
    "hour": ("trip_start_hour", 0, 24),
    "weekday": ("trip_start_day", 1, 7),
    "month": ("trip_start_month", 1, 12),
    "pickup_area": ("pickup_community_area", 0, 78),
    "dropoff_area": ("dropoff_community_area", 0, 78),
}
"""By feature: the column, its first value, and the number of values."""
KM_PER_DEGREE = 111.2
LATITUDE_OF_CHICAGO = 0.731  # radians
MOST_WEIGHT = 5.0


def preprocessing_fn(inputs: dict[str, Any]) -> dict[str, tf.Tensor]:
    """Return the features, the labels and the weight of a batch of raw trips.

    Args:
        inputs: the columns of schemas/taxi.pbtxt; a dense [rows, 1] tensor if every row has a value, else
            sparse.

    Returns:
        The transformed columns by name, each [rows, 1]: the features; `cost`, the natural logarithm of
        1 + the fare; `big_tip`, 1 if the tip is above 20% of the fare, else 0; `weight`, the fare divided by
        its mean, at most `MOST_WEIGHT`, so that a mistake about an expensive trip counts more.
    """
    filled = {name: _filled(column) for name, column in inputs.items()}
    fare = tf.maximum(filled["fare"], 0.0)
    outputs = {
        name: tft.compute_and_apply_vocabulary(
            filled[column], top_k=count, num_oov_buckets=1, vocab_filename=name
        )
        for name, (column, count) in CATEGORIES.items()
    }
    for name, (column, first, count) in WHOLE_NUMBERS.items():
        boundaries = [float(first + number) for number in range(1, count)]
        outputs[name] = tft.apply_buckets(filled[column], [boundaries])
    return {
        **outputs,
        "distance": tft.scale_to_z_score(_distance_km(filled)),
        "cost": tf.math.log1p(fare),
        "big_tip": tf.cast(tf.round(filled["tips"] * 100) * 5 > tf.round(fare * 100), tf.int64),
        "weight": tf.minimum(fare / tft.mean(fare), MOST_WEIGHT),
    }


def _distance_km(trip: dict[str, tf.Tensor]) -> tf.Tensor:
    """Return the straight-line distance from pick-up to drop-off; 0 if either is unknown."""
    known = (trip["pickup_latitude"] != 0) & (trip["dropoff_latitude"] != 0)
    north = trip["pickup_latitude"] - trip["dropoff_latitude"]
    east = (trip["pickup_longitude"] - trip["dropoff_longitude"]) * tf.math.cos(LATITUDE_OF_CHICAGO)
    return tf.where(known, KM_PER_DEGREE * tf.sqrt(north**2 + east**2), 0.0)


def _filled(column: Any) -> tf.Tensor:
    """Return a dense [rows, 1] column; empty cells become 0, or "" in a column of strings."""
    if not isinstance(column, tf.SparseTensor):
        return column
    shape = [column.dense_shape[0], 1]
    empty = "" if column.dtype == tf.string else 0
    return tf.sparse.to_dense(tf.SparseTensor(column.indices, column.values, shape), empty)
