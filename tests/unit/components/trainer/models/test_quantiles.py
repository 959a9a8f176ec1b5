"""The pinball loss and answers that rise."""

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

from slipway.components.errors import ComponentError

pytestmark = [
    pytest.mark.slow,  # Keras starts
    pytest.mark.filterwarnings("default"),  # of TensorFlow's own imports
]

LEVELS = [0.1, 0.5, 0.9]


def test_loss_is_scikit_learns_and_is_read_back_from_its_config():
    import keras

    from slipway.components.trainer.models.quantiles import PinballLoss

    draw = np.random.default_rng(4)
    labels, answers = draw.normal(size=(40, 1)), draw.normal(size=(40, 3))
    loss = keras.losses.deserialize(keras.losses.serialize(PinballLoss(LEVELS)))
    losses = [mean_pinball_loss(labels, answers[:, at], alpha=each) for at, each in enumerate(LEVELS)]
    assert float(loss(labels, answers)) == pytest.approx(np.mean(losses), rel=1e-5)
    with pytest.raises(ComponentError, match="the loss is for 3 quantiles, but the model returns 2"):
        loss(labels, answers[:, :2])
    with pytest.raises(ComponentError, match="must rise, above 0 and below 1"):
        PinballLoss([0.5, 0.1])


def test_answers_rise_and_learn_the_labels_quantiles():
    import keras

    from slipway.components.trainer.models.quantiles import PinballLoss, rising

    keras.utils.set_random_seed(1)
    given = keras.Input((1,))
    model = keras.Model(given, rising(keras.layers.Dense(3)(given)))
    model.compile(keras.optimizers.Adam(0.05), loss=PinballLoss(LEVELS))
    labels = np.random.default_rng(4).normal(size=(2000, 1))
    model.fit(np.zeros((2000, 1)), labels, batch_size=200, epochs=30, verbose=0)
    [answers] = model.predict(np.zeros((1, 1)), verbose=0)
    assert (np.diff(answers) >= 0).all()
    assert answers == pytest.approx(np.quantile(labels, LEVELS), abs=0.15)
