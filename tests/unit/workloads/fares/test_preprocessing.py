"""The fares features of a few trips: two labels and a weight, and nothing that the end of a trip tells."""

import math

import pytest
from taxi_trip import TRIP

from slipway.pipeline.testing.transform import transformed

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's and Beam's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def test_labels_and_weight_are_of_fare_and_tip_and_features_of_neither():
    from workloads.fares.preprocessing import MOST_WEIGHT, preprocessing_fn

    ended = {"fare": [0.0], "tips": [0.0], "trip_miles": [9.0], "trip_seconds": [0]}
    unknown = {"pickup_latitude": [], "pickup_longitude": [], "company": [], "dropoff_community_area": []}
    trips = [TRIP, {**TRIP, "tips": [2.01]}, {**TRIP, **ended}, {**TRIP, **unknown, "fare": [380.0]}]
    plain, tipped, free, dear = transformed(preprocessing_fn, trips, schema="schemas/taxi.pbtxt")
    assert [row["cost"].item() for row in (plain, free)] == pytest.approx([math.log(11), 0])
    assert [row["big_tip"].item() for row in (plain, tipped, free)] == [0, 1, 0], "20% is not above 20%"
    mean = (10 + 10 + 0 + 380) / 4
    assert [row["weight"].item() for row in (plain, free, dear)] == pytest.approx([10 / mean, 0, 3.8])
    assert MOST_WEIGHT == 5.0
    features = plain.keys() - {"cost", "big_tip", "weight"}
    assert {name: plain[name].tolist() for name in features} == {
        name: free[name].tolist() for name in features
    }
    assert (plain["weekday"].item(), plain["month"].item(), plain["hour"].item()) == (6, 11, 0)
    assert all(math.isfinite(dear[name].item()) for name in features), "empty cells, too"
