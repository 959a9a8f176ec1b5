"""On JAX, too, a step or a loop of one's own is trained: by Keras' rule it learns what Keras' step does."""

import textwrap

import numpy as np
import pytest

from slipway.components.trainer.settings.compute import ComputeSettings

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

MODEL = """
    import jax
    import keras

    def model_of(kind, features):
        inputs = {name: keras.Input(feature.shape, name=name) for name, feature in features.items()}
        hidden = keras.layers.Dense(8, activation="relu", name="hidden")(inputs["x"])
        model = kind(inputs, keras.layers.Dense(1, name="head")(hidden))
        model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
        return model

    def error_of(model, trainable, other, x, y):
        answers, other = model.stateless_call(trainable, other, x, training=True)
        return keras.ops.mean((answers - y) ** 2), other

    def keras_own(features, hyperparameters):
        return model_of(keras.Model, features)
"""
OWN_STEP = """
    class Own(keras.Model):
        def train_step(self, state, data):
            trainable, other, of_optimizer, of_metrics = state
            x, y = data
            slopes = jax.value_and_grad(lambda *given: error_of(self, *given), has_aux=True)
            (error, other), gradients = slopes(trainable, other, x, y)
            trainable, of_optimizer = self.optimizer.stateless_apply(of_optimizer, gradients, trainable)
            return {"error": error}, (trainable, other, of_optimizer, of_metrics)

    def build_model(features, hyperparameters):
        return model_of(Own, features)
"""
OWN_LOOP = """
    def build_model(features, hyperparameters):
        return model_of(keras.Model, features)

    def fit(model, data, context):
        slopes = jax.jit(jax.value_and_grad(lambda *given: error_of(model, *given), has_aux=True))
        for x, y in data:
            trainable = [each.value for each in model.trainable_variables]
            other = [each.value for each in model.non_trainable_variables]
            (error, _), gradients = slopes(trainable, other, x, y)
            model.optimizer.apply(gradients, model.trainable_variables)
            context.step_done(error)
        context.tell(f"{context.step} steps of one's own")
"""
LOOP_OVER_ARRAYS = """
    def build_model(features, hyperparameters):
        return model_of(keras.Model, features)

    def fit(model, data, context):
        def values(*kept):
            return [[each.value for each in variables] for variables in kept]

        @jax.jit
        def step(trainable, other, of_optimizer, x, y):
            slopes = jax.value_and_grad(lambda *given: error_of(model, *given), has_aux=True)
            (error, other), gradients = slopes(trainable, other, x, y)
            trainable, of_optimizer = model.optimizer.stateless_apply(of_optimizer, gradients, trainable)
            return error, (trainable, other, of_optimizer)

        state = None
        for x, y in data:  # which makes the optimizer's variables
            kept = model.trainable_variables, model.non_trainable_variables, model.optimizer.variables
            error, state = step(*(state or values(*kept)), x, y)
            for variables, arrays in zip(kept, state):
                for variable, array in zip(variables, arrays):
                    variable.assign(array)
            context.step_done(error)
"""


@pytest.mark.parametrize(
    ("code", "name"),
    [(OWN_STEP, "error"), (OWN_LOOP, "loss"), (LOOP_OVER_ARRAYS, "loss")],
    ids=["step", "loop", "loop over arrays"],
)
def test_a_step_and_a_loop_of_ones_own_learn_what_keras_step_learns(train, jax_forked, tmp_path, code, name):
    (tmp_path / "keras_step.py").write_text(textwrap.dedent(MODEL))
    (tmp_path / "own_step.py").write_text(textwrap.dedent(MODEL + code))
    keras, own = (
        train(interpreter=jax_forked, model=model, compute=ComputeSettings(backend="jax"))
        for model in ("keras_step.keras_own", "own_step.build_model")
    )
    assert own["result"]["steps"] == 4 * 240 // 48
    assert own["history"][-1].keys() == {"epoch", name, "val_loss"}
    assert own["history"][-1]["val_loss"] < own["history"][0]["val_loss"]
    assert own["weights"].keys() == keras["weights"].keys()
    for variable, values in keras["weights"].items():
        np.testing.assert_allclose(own["weights"][variable], values, rtol=0, atol=1e-5, err_msg=variable)
    assert [epoch["val_loss"] for epoch in own["history"]] == pytest.approx(
        [epoch["val_loss"] for epoch in keras["history"]], rel=1e-4
    )
    told = [event["message"] for event in own["events"] if event["event"] == "fit"]
    assert told == (["20 steps of one's own"] if code == OWN_LOOP else [])
