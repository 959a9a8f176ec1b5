"""Which Keras the processes of a run use: ours, or for a user's own pipeline that of the environment."""

from collections.abc import Mapping

KERAS_VARIABLES: Mapping[str, str] = {"TF_USE_LEGACY_KERAS": "0", "KERAS_BACKEND": "tensorflow"}
"""Keras 3 on TensorFlow: the default, and what our components require."""


def keras_variables(given: Mapping[str, str], *, is_ours: bool) -> dict[str, str]:
    """Return the environment variables that choose Keras for a run's processes.

    Args:
        given: the environment that the run was started in.
        is_ours: whether the run is of a workload; a user's own pipeline uses the Keras that `given` chooses.
    """
    return {name: value if is_ours else given.get(name, value) for name, value in KERAS_VARIABLES.items()}


def other_keras(given: Mapping[str, str], *, is_ours: bool) -> dict[str, str]:
    """Return those of `keras_variables` that choose another Keras than the default: results depend on it."""
    chosen = keras_variables(given, is_ours=is_ours)
    return {name: value for name, value in chosen.items() if value != KERAS_VARIABLES[name]}
