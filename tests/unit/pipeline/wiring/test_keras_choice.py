"""Which Keras the processes of a run use."""

from slipway.pipeline.wiring.keras_choice import keras_variables, other_keras

USUAL = {"TF_USE_LEGACY_KERAS": "0", "KERAS_BACKEND": "tensorflow"}


def test_pipeline_of_the_users_own_takes_the_keras_that_the_user_asks_for():
    assert keras_variables({"TF_USE_LEGACY_KERAS": "1"}, is_ours=False) == {
        **USUAL,
        "TF_USE_LEGACY_KERAS": "1",
    }
    assert keras_variables({"KERAS_BACKEND": "jax"}, is_ours=False) == {**USUAL, "KERAS_BACKEND": "jax"}


def test_keras_3_on_tensorflow_where_nothing_is_asked_for_and_for_workloads():
    assert keras_variables({"HOME": "/root"}, is_ours=False) == USUAL
    assert keras_variables({"TF_USE_LEGACY_KERAS": "1", "KERAS_BACKEND": "jax"}, is_ours=True) == USUAL


def test_only_another_keras_than_the_usual_counts():
    assert other_keras({"TF_USE_LEGACY_KERAS": "0", "KERAS_BACKEND": "jax"}, is_ours=False) == {
        "KERAS_BACKEND": "jax"
    }
    assert other_keras({"KERAS_BACKEND": "jax"}, is_ours=True) == {}
