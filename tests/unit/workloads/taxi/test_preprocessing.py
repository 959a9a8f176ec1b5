"""The taxi features of a handful of trips, computed by tf.Transform itself."""

import math

import pytest
from taxi_trip import TRIP

from slipway.pipeline.testing.transform import transformed as transform

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's and Beam's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

EMPTY = {
    name: [] for name in TRIP if name.startswith(("pickup", "dropoff")) or name in ("company", "trip_seconds")
}


TRIPS = {
    "plain": TRIP,
    "tip a cent above 20%": {**TRIP, "tips": [2.01]},
    "tip of 20%, but above it in binary fractions": {**TRIP, "fare": [5.85], "tips": [1.17]},
    "empty cells": {**TRIP, **EMPTY},
    "first of all": {**TRIP, "trip_start_hour": [0], "trip_start_day": [1], "trip_start_month": [1]},
    "no fare": {**TRIP, "fare": [0.0], "trip_miles": [0.0], "trip_seconds": [0], "tips": [0.0]},
    "refund": {**TRIP, "fare": [-5.0], "trip_miles": [-1.0], "trip_seconds": [-9], "tips": [-2.0]},
    "far and dear": {**TRIP, "payment_type": ["Credit Card"], "fare": [700.0], "trip_miles": [60.0]},
}


@pytest.fixture(scope="module")
def transformed():
    """The transformed columns of each of TRIPS, each column a list of one value."""
    from workloads.taxi.preprocessing import preprocessing_fn

    rows = transform(preprocessing_fn, list(TRIPS.values()), schema="schemas/taxi.pbtxt")
    return dict(zip(TRIPS, rows, strict=True))


def test_big_tip_is_counted_in_cents(transformed):
    labels = {name: int(row["big_tip"][0]) for name, row in transformed.items()}
    assert labels == {name: int(name == "tip a cent above 20%") for name in TRIPS}


def test_no_feature_is_made_of_tips(transformed):
    plain, tipped = dict(transformed["plain"]), dict(transformed["tip a cent above 20%"])
    assert plain.pop("big_tip") != tipped.pop("big_tip")
    assert plain == tipped


def test_empty_cells_become_values(transformed):
    row = transformed["empty cells"]
    assert (row["pickup_area"], row["dropoff_area"]) == ([0], [0])
    assert row["company_code"] != transformed["plain"]["company_code"]
    assert set(row) == set(transformed["plain"])


def test_calendar_counts_from_zero(transformed):
    assert [transformed["plain"][name][0] for name in ("hour", "weekday", "month")] == [0, 6, 11]
    assert [transformed["first of all"][name][0] for name in ("hour", "weekday", "month")] == [0, 0, 0]


def test_community_areas_keep_their_number(transformed):
    assert (transformed["plain"]["pickup_area"], transformed["plain"]["dropoff_area"]) == ([77], [8])


def test_amount_below_zero_is_as_good_as_none_and_no_nan(transformed):
    scaled = ("fare_scaled", "miles_scaled", "seconds_scaled")
    refund, none = ([float(transformed[name][key][0]) for key in scaled] for name in ("refund", "no fare"))
    assert refund == none
    assert all(math.isfinite(value) for value in refund)


def test_numbers_are_scaled(transformed):
    for name in ("fare_scaled", "miles_scaled", "seconds_scaled", "distance_scaled"):
        values = [float(row[name][0]) for row in transformed.values()]
        assert sum(values) == pytest.approx(0, abs=1e-4)
        assert sum(value**2 for value in values) / len(values) == pytest.approx(1, abs=1e-3)
