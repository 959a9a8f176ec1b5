"""The dense digits network compiles under XLA, has static shapes and learns."""

import numpy as np
import pytest

from components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def test_dense_network_learns_as_one_xla_program_of_static_shapes():
    import keras
    from sklearn.datasets import load_digits

    from workloads.digits.model import build_model

    keras.utils.set_random_seed(1)
    model = build_model(
        {"image": Feature(name="image", dtype="uint8", shape=(8, 8, 1))},
        {"units": 64, "learning_rate": 0.005},
    )
    assert all(None not in layer.output.shape[1:] for layer in model.layers)
    model.jit_compile = True  # raises where XLA cannot compile an operation
    digits = load_digits()
    images = (digits.images[:1024, ..., None] * (255 / 16)).astype("uint8")
    labels = digits.target[:1024, None].astype("float32")
    history = model.fit({"image": images}, labels, batch_size=128, epochs=20, verbose=0).history
    assert history["accuracy"][-1] > 0.9
    assert np.allclose(model({"image": images[:4]}).numpy().sum(axis=1), 1.0, atol=1e-5)
