"""Writes metrics in the files of TensorFlow Model Analysis, so that its readers can load them."""

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf
import tensorflow_model_analysis as tfma
from google.protobuf import json_format
from tensorflow_model_analysis.proto import config_pb2, metrics_for_slice_pb2, validation_result_pb2
from tensorflow_model_analysis.slicer.slicer_lib import serialize_slice_key
from tensorflow_model_analysis.writers.metrics_plots_and_validations_writer import (
    convert_slice_metrics_to_proto,
)

from slipway.components.evaluator.metric_values import Values
from slipway.components.evaluator.own_metrics import Result
from slipway.components.evaluator.request import Request
from slipway.components.evaluator.slices import SliceKey
from slipway.components.evaluator.spreads import Spreads
from slipway.components.metrics.definitions import of_output, output_of, plain_name

# Probability below the upper bound of a two-sided interval of 95 %.
_ONE_SIDED = 0.975


def write_evaluation(
    folder: str,
    config: Any,
    request: Request,
    values: Mapping[SliceKey, Values],
    spreads: Mapping[SliceKey, Spreads],
    models: Mapping[str, str],
) -> None:
    """Write the files that TFX's own executor would have written.

    Args:
        config: the EvalConfig, with TFMA's defaults.
        spreads: the spreads of those values that have one; they become intervals of 95 %.
        models: locations of the models, by name; for human readers.
    """
    tf.io.gfile.makedirs(folder)
    metrics = (
        _with_intervals(
            convert_slice_metrics_to_proto((key, _with_differences(request, each)), None),
            spreads.get(key, {}),
        )
        for key, each in values.items()
    )
    _write(_path(folder, "metrics"), metrics)
    for name, message in (
        ("plots", metrics_for_slice_pb2.PlotsForSlice),
        ("attributions", metrics_for_slice_pb2.AttributionsForSlice),
    ):
        empty = [message(slice_key=serialize_slice_key(key)) for key in values]
        _write(_path(folder, name), empty)
    # A request has no thresholds: a configuration with thresholds goes to TFX's own executor.
    _write(
        f"{folder}/validations.tfrecord", [validation_result_pb2.ValidationResult(missing_thresholds=True)]
    )
    run = config_pb2.EvalRun(
        eval_config=config,
        version=tfma.version.VERSION,
        data_location="<user provided PCollection>",
        file_format="<unknown>",
        model_locations=models,
    )
    with tf.io.gfile.GFile(f"{folder}/eval_config.json", "w") as file:
        file.write(json_format.MessageToJson(run) + "\n")


_FILES = (
    ("metrics", tfma.load_metrics, "metric_keys_and_values"),
    ("plots", tfma.load_plots, "plot_keys_and_values"),
    ("attributions", tfma.load_attributions, "attributions_keys_and_values"),
)


def result_names(folder: str) -> set[Result]:
    """Return the keys of all results that an evaluation holds for any slice, plots included."""
    return {
        (entry.key.model_name, entry.key.output_name, entry.key.name)
        for _, load, entries in _FILES
        for record in load(folder)
        for entry in getattr(record, entries)
    }


def merge_evaluation(folder: str, other: str) -> None:
    """Add the results of another evaluation of the same rows and models to an evaluation's files.

    Args:
        folder: output folder of `write_evaluation`.
        other: output folder of TFX's own executor, whose results have other names.
    """
    for name, load, entries in _FILES:
        merged = {record.slice_key.SerializeToString(): record for record in load(folder)}
        for record in load(other):
            found = getattr(record, entries)
            key = record.slice_key.SerializeToString()
            if key in merged:
                getattr(merged[key], entries).extend(found)
            else:
                merged[key] = record
        _write(_path(folder, name), merged.values())


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name}-00000-of-00001.tfrecord"


def _with_differences(request: Request, values: Values) -> dict[Any, float | bytes]:
    """Return the values by TFMA's keys, plus candidate minus baseline for numbers that both models have."""

    def key_of(model: str, name: str) -> Any:
        return tfma.metrics.MetricKey(
            name=plain_name(name),
            model_name=model,
            output_name=output_of(name),
            example_weighted=request.is_weighted(name),
        )

    found: dict[Any, float | bytes] = {key_of(model, name): value for (model, name), value in values.items()}
    baseline = next((model.name for model in request.models if model.is_baseline), None)
    for (model, name), value in values.items():
        other = values.get((baseline, name)) if baseline is not None else None
        if model != baseline and isinstance(value, float) and isinstance(other, float):
            found[key_of(model, name).make_diff_key()] = value - other
    return found


def _with_intervals(record: Any, spreads: Spreads) -> Any:
    """Add the confidence intervals to a record, in TensorFlow Model Analysis' own form."""
    for entry in record.metric_keys_and_values:
        name = of_output(entry.key.output_name, entry.key.name)
        spread = spreads.get((entry.key.model_name, name, entry.key.is_diff))
        if spread is not None:
            half = spread.half(_ONE_SIDED)
            value, interval = entry.value.double_value.value, entry.confidence_interval
            interval.lower_bound.double_value.value = value - half
            interval.upper_bound.double_value.value = value + half
            interval.standard_error.double_value.value = spread.error
            interval.degrees_of_freedom.value = spread.degrees_of_freedom
    return record


def _write(path: str, messages: Iterable[Any]) -> None:
    with tf.io.TFRecordWriter(path) as file:
        for message in messages:
            file.write(message.SerializeToString())
