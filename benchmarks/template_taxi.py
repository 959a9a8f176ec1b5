"""The model of TFX's taxi template as a `build_model`, so that our Trainer can train it, too."""

from collections.abc import Mapping
from typing import Any


def build_model(_features: Mapping[str, Any], _hyperparameters: Mapping[str, Any]) -> Any:
    """Return the template's model, with the template's constants."""
    from tfx.experimental.templates.taxi.models.keras_model import constants
    from tfx.experimental.templates.taxi.models.keras_model import model as template

    return template._build_keras_model(
        hidden_units=constants.HIDDEN_UNITS, learning_rate=constants.LEARNING_RATE
    )
