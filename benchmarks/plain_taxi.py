"""The taxi workload as a plain Python script without TFX or gates, the baseline of bench_engine.py.

    .venv/bin/python benchmarks/plain_taxi.py FOLDER [CSV EPOCHS BATCH_SIZE]

Reads the CSV with pyarrow, computes the same features, trains the same Keras model for as many epochs,
evaluates it overall and by slice, and saves a SavedModel that takes the transformed features.
"""

import importlib.util
import sys
from pathlib import Path

import keras
import numpy as np
import pandas as pd

from slipway.components.trainer.features import Feature
from workloads.taxi.model import build_model

# As in workloads/taxi/preprocessing.py, which is not imported because it imports TensorFlow Transform.
COMPANIES, COMMUNITY_AREAS, KM_PER_DEGREE, LATITUDE_OF_CHICAGO = 16, 77, 111.2, 41.88
EPOCHS, BATCH_SIZE, SEED = 6, 256, 1  # those of workloads/taxi/workload.yaml
SLICES = ("trip_start_hour", "payment_type")


def read_trips(source: str = "") -> pd.DataFrame:
    """Return the trips of a CSV, or those that TFX brings; an empty cell becomes 0, or an empty text."""
    [package] = importlib.util.find_spec("tfx").submodule_search_locations
    own = Path(package, "examples/chicago_taxi_pipeline/data/simple/data.csv")
    trips = pd.read_csv(source or own, engine="pyarrow")
    texts = ["payment_type", "company"]
    return trips.assign(**trips[texts].fillna("")).fillna(0)


def codes(values: pd.Series, *, train: pd.Series, top: int | None = None) -> np.ndarray:
    """Return codes by frequency in the training rows; all values beyond the `top` share the next code."""
    names = train.value_counts().index[:top]
    found = pd.Index(names).get_indexer(values)
    return np.where(found < 0, len(names), found)


def transform(trips: pd.DataFrame, is_train: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, Feature]]:
    """Return the features of workloads/taxi/preprocessing.py, [rows, 1], and their descriptions."""
    north = trips.pickup_latitude - trips.dropoff_latitude
    east = (trips.pickup_longitude - trips.dropoff_longitude) * np.cos(np.radians(LATITUDE_OF_CHICAGO))
    is_known = (trips.pickup_latitude != 0) & (trips.dropoff_latitude != 0)
    distance_km = np.where(is_known, KM_PER_DEGREE * np.hypot(north, east), 0.0)
    columns, features = {}, {}
    for name, values in (
        ("fare_scaled", trips.fare),
        ("miles_scaled", trips.trip_miles),
        ("seconds_scaled", trips.trip_seconds),
        ("distance_scaled", distance_km),
    ):
        logarithm = np.log1p(np.asarray(values, dtype="float32"))
        columns[name] = (logarithm - logarithm[is_train].mean()) / logarithm[is_train].std()
        features[name] = Feature(name=name, dtype="float32", shape=(1,), categories=None)
    quantiles = np.quantile(trips.fare[is_train], np.linspace(0, 1, 11)[1:-1])
    train = trips[is_train]
    for name, values, categories in (
        ("fare_bucket", np.searchsorted(quantiles, trips.fare, side="right"), 10),
        ("payment", codes(trips.payment_type, train=train.payment_type), train.payment_type.nunique() + 1),
        ("company_code", codes(trips.company, train=train.company, top=COMPANIES), COMPANIES + 1),
        ("hour", trips.trip_start_hour, 24),
        ("weekday", trips.trip_start_day - 1, 7),
        ("month", trips.trip_start_month - 1, 12),
        ("pickup_area", trips.pickup_community_area, COMMUNITY_AREAS + 1),
        ("dropoff_area", trips.dropoff_community_area, COMMUNITY_AREAS + 1),
    ):
        columns[name] = np.clip(np.asarray(values, dtype="int32"), 0, categories - 1)
        features[name] = Feature(name=name, dtype="int64", shape=(1,), categories=categories)
    return {name: values.reshape(-1, 1) for name, values in columns.items()}, features


def main() -> None:
    """Train, evaluate and save the model; print the AUC of the eval split."""
    folder, *given = sys.argv[1:]
    source, epochs, batch_size = given or ("", EPOCHS, BATCH_SIZE)
    keras.utils.set_random_seed(SEED)
    trips = read_trips(source)
    is_train = np.random.default_rng(SEED).random(len(trips)) < 2 / 3
    columns, features = transform(trips, is_train)
    label = (np.round(trips.tips * 100) * 5 > np.round(trips.fare * 100)).to_numpy().astype("int64")
    train = {name: values[is_train] for name, values in columns.items()}
    held_out = {name: values[~is_train] for name, values in columns.items()}
    model = build_model(features, {"learning_rate": 0.001})
    model.fit(train, label[is_train], batch_size=int(batch_size), epochs=int(epochs), verbose=0)
    predicted = model.predict(held_out, batch_size=4096, verbose=0)[:, 0]

    def auc_of(rows: np.ndarray) -> float:
        metric = keras.metrics.AUC()
        metric.update_state(label[~is_train][rows], predicted[rows])
        return float(metric.result())

    for key in SLICES:
        values = trips[key].to_numpy()[~is_train]
        print(key, {str(value): round(auc_of(values == value), 4) for value in np.unique(values)})
    model.export(str(Path(folder, "model")), verbose=False)
    print(f"auc {auc_of(np.ones(len(predicted), dtype=bool)):.4f}")


if __name__ == "__main__":
    main()
