"""The curated schema holds for the sample of real trips, and finds what is wrong in spoiled ones."""

import importlib.util
import os
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    # TFX's and TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def tfdv():
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")
    import tfx.components  # noqa: F401  (first: it patches what data validation imports)

    return importlib.import_module("tensorflow_data_validation")


@pytest.fixture(scope="module")
def schema(tfdv):
    return tfdv.load_schema_text("schemas/taxi.pbtxt")


@pytest.fixture(scope="module")
def trips():
    """The sample as a data frame; whole numbers stay whole beside empty cells."""
    import pandas as pd

    file = Path(importlib.util.find_spec("tfx").origin).parent
    frame = pd.read_csv(file / "examples/chicago_taxi_pipeline/data/simple/data.csv")
    whole = ["trip_seconds", *(n for n in frame if n.endswith(("_area", "_tract")))]
    return frame.astype(dict.fromkeys(whole, "Int64"))


@pytest.fixture(scope="module")
def anomalies(tfdv, schema):
    """A function that returns what is wrong with some trips, in TFDV's short words, by column."""

    def find(frame, environment="TRAINING"):
        statistics = tfdv.generate_statistics_from_dataframe(frame, n_jobs=1)
        found = tfdv.validate_statistics(statistics, schema, environment=environment).anomaly_info
        return {name: info.short_description for name, info in found.items()}

    return find


def test_sample_has_no_anomaly(anomalies, trips):
    assert anomalies(trips) == {}


def test_requests_carry_no_tips_and_need_none(anomalies, trips):
    assert anomalies(trips.drop(columns="tips"), environment="SERVING") == {}
    assert set(anomalies(trips.drop(columns="tips"))) == {"tips"}


def test_column_gone_quiet_is_found(anomalies, trips):
    spoiled = trips.copy()
    spoiled.loc[spoiled.index % 2 == 0, ["dropoff_latitude", "fare"]] = None
    assert set(anomalies(spoiled)) == {"dropoff_latitude", "fare"}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("fare", -1.0),
        ("payment_type", "Cheque"),
        ("trip_start_hour", 24),
        ("trip_start_month", 0),
        ("pickup_community_area", 78),
        ("pickup_latitude", 48.1),
        ("trip_seconds", 90_000),
    ],
)
def test_impossible_value_is_found(anomalies, trips, column, value):
    spoiled = trips.copy()
    spoiled.loc[7, column] = value
    assert set(anomalies(spoiled)) == {column}


def test_new_single_cab_firm_is_fine_but_unknown_names_everywhere_are_not(anomalies, trips):
    spoiled = trips.copy()
    spoiled.loc[7, "company"] = "9999 - New Cab Co"
    assert anomalies(spoiled) == {}
    spoiled.loc[spoiled.index % 3 == 0, "company"] = "9999 - New Cab Co"
    assert set(anomalies(spoiled)) == {"company"}
