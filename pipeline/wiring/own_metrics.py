"""Custom metrics, as the Evaluator's configuration takes them. Imports TensorFlow Model Analysis."""

from collections.abc import Mapping

from tensorflow_model_analysis.metrics.metric_types import is_registered_metric

from slipway.pipeline.config.evaluate import OwnMetricConfig
from slipway.pipeline.errors import ConfigError

_TFMA = "tensorflow_model_analysis."


def own_metrics(given: Mapping[str, OwnMetricConfig]) -> dict[str, tuple[str, Mapping[str, object]]]:
    """Return the dotted path of each metric's class, and its constructor arguments.

    Raises:
        ConfigError: TensorFlow Model Analysis, which looks up a class by its name alone, would use its own
            class of that name.
    """
    for name, each in given.items():
        class_name = each.class_path.rpartition(".")[2]
        if is_registered_metric(class_name) and not each.class_path.startswith(_TFMA):
            raise ConfigError(
                f"evaluate.own_metrics.{name}.class: {each.class_path} has the name of one of TensorFlow "
                "Model Analysis, which would be used instead",
                hint="give the class another name",
            )
    return {name: (each.class_path, each.settings) for name, each in given.items()}
