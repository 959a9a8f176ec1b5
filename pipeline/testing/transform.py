"""Runs a preprocessing function through tf.Transform on a handful of rows."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slipway.components.project import PROJECT_ROOT
from slipway.components.trainer.features import Feature
from slipway.components.trainer.transformed_features import features_of

Row = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Table:
    """Rows in the form that a model receives.

    Attributes:
        features: the description of each input for `build_model`, by name.
        inputs: the values of each input, [rows, *shape of the feature], of the type that the model receives.
        labels: float32 of shape [rows, *shape of the label].
    """

    features: Mapping[str, Feature]
    inputs: Mapping[str, np.ndarray]
    labels: np.ndarray


def transformed(
    preprocessing_fn: Callable[..., Any], rows: Sequence[Row], *, schema: str | Path
) -> list[dict[str, Any]]:
    """Analyze and transform rows in memory, as the Transform node does with files.

    Args:
        preprocessing_fn: the workload's preprocessing function.
        rows: each row maps columns to lists of values, [] for an empty cell. tf.Transform's analyzers
            (means, vocabularies) run on these rows.
        schema: the schema file of the raw columns, relative to the project's root.

    Returns:
        The transformed rows in the same order: feature -> NumPy array with one entry per value, or the value
        itself if `preprocessing_fn` returns one value per row, without a second dimension.
    """
    with tempfile.TemporaryDirectory() as folder:
        found, _ = _transform(preprocessing_fn, rows, schema, folder)
    return found


def transformed_table(
    preprocessing_fn: Callable[..., Any],
    rows: Sequence[Row],
    *,
    schema: str | Path,
    label: str,
    weight: str | None = None,
    images: Mapping[str, Sequence[int]] | None = None,
) -> Table:
    """Transform rows like `transformed`, and return them in the form that `build_model` and `fit` take.

    Args:
        preprocessing_fn: as for `transformed`.
        rows: as for `transformed`.
        schema: as for `transformed`.
        label: the transformed column to predict: the workload's `transform.label`.
        weight: the transformed column of weights, which is not an input: the workload's `transform.weight`.
        images: the shapes of columns of raw image bytes: the workload's `train.images`.

    Raises:
        ComponentError: a transformed column is text or sparse, which no model takes.
        KeyError: there is no transformed column with the name of the label or the weight.
    """
    import tensorflow_transform as tft

    with tempfile.TemporaryDirectory() as folder:
        found, transform_fn = _transform(preprocessing_fn, rows, schema, folder)
        transform_fn | tft.beam.WriteTransformFn(folder)
        described = features_of(tft.TFTransformOutput(folder).transformed_metadata.schema, images=images)
    features = {each.name: each for each in described}
    columns = {name: _column([row[name] for row in found], each) for name, each in features.items()}
    del features[label]
    if weight is not None:
        del features[weight], columns[weight]
    return Table(features, columns, columns.pop(label).astype(np.float32))


def _column(values: Sequence[Any], feature: Feature) -> np.ndarray:
    """Return a transformed column as training parses it from files: [rows, *shape]."""
    from slipway.components.trainer.pixels import model_input

    if feature.dtype == "uint8":
        # As objects, because NumPy's bytes type drops trailing zeros as padding.
        return np.asarray(model_input(np.array(values, object), feature))
    return np.asarray(model_input(np.stack(values).reshape(-1, *feature.shape), feature))


def _transform(
    preprocessing_fn: Callable[..., Any], rows: Sequence[Row], schema: str | Path, folder: str
) -> tuple[list[dict[str, Any]], Any]:
    """Return the transformed rows, and tf.Transform's function, whose files are in the folder."""
    import tensorflow_transform.beam as tft_beam
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2
    from tensorflow_transform.tf_metadata import dataset_metadata

    text = (PROJECT_ROOT / schema).read_text(encoding="utf-8")
    metadata = dataset_metadata.DatasetMetadata(text_format.Parse(text, schema_pb2.Schema()))
    with tft_beam.Context(temp_dir=folder):
        (found, _), transform_fn = (list(rows), metadata) | tft_beam.AnalyzeAndTransformDataset(
            preprocessing_fn
        )
    return list(found), transform_fn
