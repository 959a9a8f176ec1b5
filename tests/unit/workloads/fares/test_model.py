"""The fares model: two heads on one trunk, each with a loss of its own."""

import pytest

from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def test_both_heads_learn_and_rows_that_weigh_nothing_do_not_count():
    import numpy as np

    from workloads.fares.model import build_model

    features = {"x": Feature(name="x", dtype="float32"), "c": Feature(name="c", dtype="int64", categories=3)}
    model = build_model(features, {"hidden_units": [16], "dropout": 0.0, "learning_rate": 0.02})
    random = np.random.default_rng(1)
    x, c = random.normal(size=(512, 1)), random.integers(0, 3, size=(512, 1))
    labels = {"cost": 2 * x + c, "tip": (x > 0).astype(float)}
    weights = (np.arange(512) % 2).astype(np.float32)
    spoiled = {name: np.where(weights[:, None] == 0, 1 - label, label) for name, label in labels.items()}
    model.fit({"x": x, "c": c}, spoiled, sample_weight=weights, epochs=40, batch_size=64, verbose=0)
    found = model.predict({"x": x, "c": c}, verbose=0)
    assert found.keys() == {"cost", "tip"}
    assert np.abs(found["cost"] - labels["cost"]).mean() < 0.3
    assert ((found["tip"] > 0.5) == labels["tip"]).mean() > 0.95
