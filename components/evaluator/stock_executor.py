"""TFX's own executor with checks and clear errors for custom metrics, and slices by raw columns."""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.extractors import example_weights_extractor, slice_key_extractor
from tensorflow_model_analysis.metrics.metric_types import registered_metrics
from tensorflow_model_analysis.utils.keras_lib import tf_keras
from tfx.components.evaluator.executor import Executor as StockExecutor
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import proto_utils

from slipway.components.evaluator.metric_files import result_names
from slipway.components.evaluator.own_metrics import (
    OwnMetric,
    failure,
    own_metrics,
    require_metrics,
    require_results,
    weighed_alike,
)

KINDS = (tfma.metrics.Metric, tf_keras.metrics.Metric, tf_keras.losses.Loss)
"""Base classes that TensorFlow Model Analysis accepts for a custom metric."""
_MOST_SQUARED = 1e18


class CheckedExecutor(StockExecutor):
    """TFX's own executor with checks of custom metrics.

    Unchecked, TensorFlow Model Analysis silently prefers its own class of the same name to the user's, and
    ignores a metric that gives no result. A slice is by the raw column, even if a transformed one has its
    name. Both models are measured with the candidate's weights.
    """

    def Do(  # noqa: N802  (TFX's name)
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, object],
    ) -> None:
        """Write the artifact `evaluation`.

        Raises:
            ComponentError: a custom metric cannot be constructed, fails, or gives no result.
        """
        metrics = [] if _is_apart(exec_properties) else _of_the_user(input_dict, exec_properties)
        require_metrics(metrics, kinds=KINDS, taken=registered_metrics())
        try:
            with _slices_of_raw_columns(), _weights_and_labels_as_ours():
                super().Do(input_dict, output_dict, exec_properties)
        except Exception as error:
            if not metrics:
                raise
            raise failure(metrics, error) from error
        if metrics:
            folder = artifact_utils.get_single_uri(output_dict[standard_component_specs.EVALUATION_KEY])
            require_results(metrics, result_names(folder))


def read_config(exec_properties: Mapping[str, object]) -> Any:
    """Return the node's EvalConfig as given."""
    found = tfma.EvalConfig()
    proto_utils.json_to_proto(exec_properties[standard_component_specs.EVAL_CONFIG_KEY], found)
    return found


def with_defaults(config: Any, input_dict: Mapping[str, list[Any]]) -> Any:
    """Return a configuration with the defaults that TFX's own executor fills in."""
    has_baseline = bool(input_dict.get(standard_component_specs.BASELINE_MODEL_KEY))
    return tfma.utils.update_eval_config_with_defaults(config, has_baseline=has_baseline, rubber_stamp=True)


class _RawColumnsFirst(slice_key_extractor.ExtractSliceKeysFn):
    """Finds the slices of an example: a raw column comes before a transformed one of its name.

    TensorFlow Model Analysis takes the transformed one, which holds codes or scaled numbers.
    """

    def process(self, element: dict[str, Any], slice_spec: list[Any]) -> list[dict[str, Any]]:
        """Return the example with the keys of its slices."""
        transformed = element.get(constants.TRANSFORMED_FEATURES_KEY)
        if transformed is None:
            return list(super().process(element, slice_spec))
        raw = element[constants.FEATURES_KEY]
        if not self._eval_config or len(self._eval_config.model_specs) == 1:
            others = _without(transformed, raw)
        else:
            others = {model: _without(columns, raw) for model, columns in transformed.items()}
        [found] = super().process({**element, constants.TRANSFORMED_FEATURES_KEY: others}, slice_spec)
        return [{**found, constants.TRANSFORMED_FEATURES_KEY: transformed}]


def _without(columns: Mapping[str, object], names: Collection[str]) -> dict[str, object]:
    return {name: values for name, values in columns.items() if name not in names}


@contextlib.contextmanager
def _slices_of_raw_columns() -> Iterator[None]:
    """Make TensorFlow Model Analysis find slices as `_RawColumnsFirst` does; it has no argument for this."""
    theirs = slice_key_extractor.ExtractSliceKeysFn
    slice_key_extractor.ExtractSliceKeysFn = _RawColumnsFirst
    try:
        yield
    finally:
        slice_key_extractor.ExtractSliceKeysFn = theirs


def known_where_weightless(labels: Any, weights: Any) -> Any:
    """Return labels with 0 for each that is NaN or infinite in a row of weight 0, as of one without a label.

    A metric that multiplies by the weight would be NaN for all rows: 0 times NaN is NaN. So it would be with
    a number whose square float32 does not hold.

    Args:
        labels: an array [batch, ...], or such arrays by model or output; others are returned as they are.
        weights: an array [batch] or [batch, 1], or such arrays by the same names.
    """
    if isinstance(labels, Mapping):
        return {
            name: known_where_weightless(
                each, weights.get(name) if isinstance(weights, Mapping) and name in weights else weights
            )
            for name, each in labels.items()
        }
    is_array = isinstance(labels, np.ndarray) and isinstance(weights, np.ndarray)
    if not is_array or labels.dtype.kind != "f" or not labels.ndim or weights.size != len(labels):
        return labels
    is_weightless = (weights == 0).reshape(-1, *[1] * (labels.ndim - 1))
    unknown = is_weightless & ~(np.abs(labels) <= _MOST_SQUARED)
    return np.where(unknown, 0, labels).astype(labels.dtype) if unknown.any() else labels


def _as_ours(extracts: Mapping[str, object], config: Any) -> dict[str, object]:
    """Return the extracts of a batch with weights and labels as our own pass over the rows takes them."""
    if constants.EXAMPLE_WEIGHTS_KEY not in extracts:
        return dict(extracts)
    weights = weighed_alike(extracts[constants.EXAMPLE_WEIGHTS_KEY], config)
    labels = known_where_weightless(extracts.get(constants.LABELS_KEY), weights)
    return {**extracts, constants.EXAMPLE_WEIGHTS_KEY: weights, constants.LABELS_KEY: labels}


@beam.ptransform_fn
def _ExtractWeights(extracts: Any, theirs: Any, config: Any) -> Any:  # noqa: N802  (Beam's names of transforms)
    return extracts | "Weights" >> theirs | "AsOurs" >> beam.Map(partial(_as_ours, config=config))


@contextlib.contextmanager
def _weights_and_labels_as_ours() -> Iterator[None]:
    """Make TensorFlow Model Analysis go on from `_as_ours`, once it has the weights."""
    theirs = example_weights_extractor.ExampleWeightsExtractor

    def ours(eval_config: Any) -> Any:
        found = theirs(eval_config)
        return found._replace(ptransform=_ExtractWeights(found.ptransform, eval_config))

    example_weights_extractor.ExampleWeightsExtractor = ours
    try:
        yield
    finally:
        example_weights_extractor.ExampleWeightsExtractor = theirs


def _is_apart(exec_properties: dict[str, object]) -> bool:
    """Return True if the user's code comes in a package, which only TFX's executor installs, or there is no
    configuration."""
    keys = standard_component_specs
    return bool(exec_properties.get(keys.MODULE_PATH_KEY)) or not exec_properties.get(keys.EVAL_CONFIG_KEY)


def _of_the_user(input_dict: dict[str, list[Any]], exec_properties: dict[str, object]) -> list[OwnMetric]:
    # The checks are for users' classes: TensorFlow Model Analysis deliberately replaces Keras' metrics by its
    # own.
    found = own_metrics(with_defaults(read_config(exec_properties), input_dict))
    return [each for each in found if not each.is_of_a_library]
