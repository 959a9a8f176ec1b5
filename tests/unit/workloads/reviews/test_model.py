"""The reviews model: it learns which words are good, and answers a text without a word with a number."""

import pytest

from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def test_good_words_are_learned_and_padding_does_not_count():
    import numpy as np

    from workloads.reviews.model import build_model

    features = {"words": Feature(name="words", dtype="int64", shape=(8,), categories=12)}
    model = build_model(features, {"learning_rate": 0.02, "dimension": 8, "dropout": 0.0})
    random = np.random.default_rng(1)
    codes = random.integers(1, 12, size=(512, 8)) * (random.random((512, 8)) < 0.7)
    labels = (codes == 3).any(axis=1).astype(float)[:, None]
    model.fit({"words": codes}, labels, epochs=30, batch_size=64, verbose=0)
    asked = np.array([[3, 5, 0, 0, 0, 0, 0, 0], [4, 5, 0, 0, 0, 0, 0, 0], [0] * 8])
    found = model.predict({"words": asked}, verbose=0)[:, 0]
    assert found[0] > 0.5 > found[1]
    assert np.isfinite(found[2])
    moved = model.predict({"words": asked[:, ::-1]}, verbose=0)[:, 0]
    np.testing.assert_allclose(found, moved, rtol=1e-5)
