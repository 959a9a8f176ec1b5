"""A variable of TensorFlow that a training changed and that answers depend on would be lost: it is named."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature
from slipway.components.trainer.unsaved_state import UnsavedState

FEATURES = {"x": Feature(name="x", dtype="float32")}


@pytest.fixture
def model():
    """A model that multiplies by a variable of TensorFlow, and counts in another, in a list."""
    import keras
    import tensorflow as tf

    class Held(keras.Model):
        def __init__(self):
            super().__init__(name="held")
            self.slope = tf.Variable([[1.0]])
            self.counts = [tf.Variable(0)]
            self.head = keras.layers.Dense(1)

        def call(self, inputs):
            return self.head(tf.matmul(inputs["x"], self.slope))

    model = Held()
    model({"x": tf.ones([1, 1])})
    return model


def test_changed_variable_that_answers_depend_on_is_named(model):
    unsaved = UnsavedState(model)
    model.slope.assign([[2.0]])
    with pytest.raises(
        ComponentError, match=r"^the training changed held\.slope, a tf\.Variable, which Keras"
    ):
        unsaved.require_unchanged(FEATURES)


def test_what_answers_do_not_depend_on_or_keras_saves_may_change(model):
    unsaved = UnsavedState(model)
    unsaved.require_unchanged(FEATURES)
    model.counts[0].assign(7)
    model.head.kernel.assign([[7.0]])
    unsaved.require_unchanged(FEATURES)
