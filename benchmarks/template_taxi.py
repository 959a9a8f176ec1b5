"""The model of TFX's taxi template as a `build_model`, so that it can be trained both ways."""

from collections.abc import Mapping
from typing import Any


def build_model(_features: Mapping[str, Any], _hyperparameters: Mapping[str, Any]) -> Any:
    """The template's own function, with its own constants."""
    from tfx.experimental.templates.taxi.models.keras_model import constants
    from tfx.experimental.templates.taxi.models.keras_model import model as template

    return template._build_keras_model(
        hidden_units=constants.HIDDEN_UNITS, learning_rate=constants.LEARNING_RATE
    )
