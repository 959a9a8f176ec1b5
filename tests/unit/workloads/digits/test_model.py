"""The dense digits network compiles under XLA, has static shapes and learns."""

import numpy as np
import pytest

from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def test_dense_network_of_the_tutorials_is_a_profile_with_their_batch_and_epochs(project):
    import keras

    from slipway.pipeline.config import load_workload
    from workloads.digits.model import build_model

    file = project / "workloads/digits/workload.yaml"
    train = load_workload(file, profile="dense_mnist", root=project).train
    assert (train.model, train.batch_size, train.epochs) == ("workloads.digits.model.build_model", 1024, 5)
    image = Feature(name="image", dtype="uint8", shape=tuple(train.images["image"]))
    model = build_model({"image": image}, train.hyperparameters)
    dense = [each for each in model.layers if isinstance(each, keras.layers.Dense)]
    assert [(each.units, each.activation.__name__) for each in dense] == [(512, "relu"), (10, "softmax")]
    [dropout] = [each for each in model.layers if isinstance(each, keras.layers.Dropout)]
    assert (dropout.rate, type(model.optimizer).__name__) == (0.2, "Adam")


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
