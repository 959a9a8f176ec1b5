"""Runs a preprocessing function through tf.Transform on a handful of rows."""

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slipway.components.project import PROJECT_ROOT
from slipway.components.trainer.features import Feature
from slipway.components.trainer.labels import Label, columns_of
from slipway.components.trainer.transformed_features import features_of

Row = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Table:
    """Rows in the form that a model receives.

    Attributes:
        features: the description of each input for `build_model`, by name.
        inputs: the values of each input, [rows, *shape of the feature], of the type that the model receives.
        labels: float32 of shape [rows, *shape of the label]; several labels of a row are side by side, [rows,
            labels]; those of several outputs are a mapping by output name.
    """

    features: Mapping[str, Feature]
    inputs: Mapping[str, np.ndarray]
    labels: Any


def transformed(
    preprocessing_fn: Callable[..., Any], rows: Sequence[Row], *, schema: str | Path
) -> list[dict[str, Any]]:
    """Analyze and transform rows in memory, as the Transform node does with files.

    Args:
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
    label: Label,
    weight: str | None = None,
    pass_through: Collection[str] = (),
    images: Mapping[str, Sequence[int]] | None = None,
) -> Table:
    """Transform rows like `transformed`, and return them in the form that `build_model` and `fit` take.

    Args:
        preprocessing_fn: as for `transformed`.
        rows: as for `transformed`.
        schema: as for `transformed`.
        label: the transformed column to predict, several, or one for each output: the workload's
            `transform.label`.
        weight: the transformed column of weights, which is not an input: the workload's `transform.weight`.
        pass_through: other transformed columns that are not inputs: the workload's `transform.pass_through`,
            and its `transform.group`.
        images: the shapes of columns of raw image bytes: the workload's `train.images`.

    Raises:
        ComponentError: a transformed column is text or sparse, which no model takes; or it holds a whole
            number that does not fit into 32 bits.
        KeyError: there is no transformed column with the name of the label or the weight.
    """
    with tempfile.TemporaryDirectory() as folder:
        found, described_by = _transform(preprocessing_fn, rows, schema, folder)
        apart = {*pass_through} - {*columns_of(label), weight}
        described = features_of(described_by, images=images, apart=apart)
    features = {each.name: each for each in described}
    columns = {name: _column([row[name] for row in found], each) for name, each in features.items()}
    if weight is not None:
        del features[weight], columns[weight]
    labels = {name: columns.pop(name).astype(np.float32) for name in columns_of(label)}
    for name in labels:
        del features[name]
    if isinstance(label, str):
        return Table(features, columns, labels[label])
    if isinstance(label, Mapping):
        return Table(features, columns, {output: labels[name] for output, name in label.items()})
    return Table(features, columns, np.concatenate([labels[name] for name in label], axis=-1))


def _column(values: Sequence[Any], feature: Feature) -> np.ndarray:
    """Return a transformed column as training parses it from files: [rows, *shape]."""
    import tensorflow as tf

    from slipway.components.trainer.input.parsing import require_int32, wrong_examples
    from slipway.components.trainer.pixels import model_input

    if feature.dtype == "uint8":
        # As objects, because NumPy's bytes type drops trailing zeros as padding.
        return np.asarray(model_input(np.array(values, object), feature))
    column = np.stack(values).reshape(-1, *feature.shape)
    if feature.may_exceed_int32:
        try:
            require_int32(column, feature)
        except tf.errors.InvalidArgumentError as error:
            raise wrong_examples(error) from error
    return np.asarray(model_input(column, feature))


def _transform(
    preprocessing_fn: Callable[..., Any], rows: Sequence[Row], schema: str | Path, folder: str
) -> tuple[list[dict[str, Any]], Any]:
    """Return the transformed rows and their schema.

    The node's own parts do it, in a tenth of the time that tf.Transform's Beam pipeline takes to be built.
    """
    import tensorflow_transform as tft
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2
    from tensorflow_transform import impl_helper

    from slipway.components.process_pool import ProcessPool
    from slipway.components.shards import Shard
    from slipway.components.transform.analysis import Reading, analyze
    from slipway.components.transform.examples import Columns, write
    from slipway.components.transform.graph import loaded, trace
    from slipway.components.transform.operations import UnknownOperationError

    text = (PROJECT_ROOT / schema).read_text(encoding="utf-8")
    raw = text_format.Parse(text, schema_pb2.Schema())
    file = f"{folder}/rows.gz"
    write(file, [[_serialized(row, raw) for row in rows]])
    columns = Columns(raw)
    traced = trace(preprocessing_fn, columns.specs, temporary=f"{folder}/passes")
    try:
        with ProcessPool(1) as workers:
            shard = Shard("rows", 0, 1, (file,), Path(file).stat().st_size)
            reading = Reading([shard], workers, raw.SerializeToString(), list(columns.specs))
            replacements = analyze(traced, reading)
    except UnknownOperationError:
        return _transform_with_beam(preprocessing_fn, rows, raw, folder)
    traced.finish(replacements, folder)
    output = tft.TFTransformOutput(folder)
    described = output.transformed_metadata.schema
    names = list(output.transformed_feature_spec())
    apply = loaded(output.transform_savedmodel_dir, list(columns.specs), names)
    converter = impl_helper.make_tensor_to_arrow_converter(described)
    found: list[dict[str, Any]] = []
    for batch in columns.batches([file]):
        found += impl_helper.record_batch_to_instance_dicts(converter.convert(apply(batch)), described)
    return found, described


def _transform_with_beam(
    preprocessing_fn: Callable[..., Any], rows: Sequence[Row], raw: Any, folder: str
) -> tuple[list[dict[str, Any]], Any]:
    """As `_transform`, with what only TFX's own executor can run in a node."""
    import tensorflow_transform.beam as tft_beam
    from tensorflow_transform.tf_metadata import dataset_metadata

    metadata = dataset_metadata.DatasetMetadata(raw)
    with tft_beam.Context(temp_dir=folder):
        (found, described), _ = (list(rows), metadata) | tft_beam.AnalyzeAndTransformDataset(preprocessing_fn)
    return list(found), described.schema


def _serialized(row: Row, schema: Any) -> bytes:
    """Return a row as an example whose columns have the types of the schema.

    Raises:
        KeyError: the row lacks a column.
        TypeError: a value is not of its column's type.
    """
    import tensorflow as tf
    from tensorflow_metadata.proto.v0 import schema_pb2

    example = tf.train.Example()
    for column in schema.feature:
        values = [value for value in np.asarray(row[column.name], object).ravel() if value is not None]
        if not values:
            continue
        feature = example.features.feature[column.name]
        try:
            if column.type == schema_pb2.BYTES:
                texts = [value.encode() if isinstance(value, str) else value for value in values]
                feature.bytes_list.value.extend(texts)
            elif column.type == schema_pb2.FLOAT:
                feature.float_list.value.extend(values)
            else:
                feature.int64_list.value.extend(values)
        except TypeError as error:
            kind = schema_pb2.FeatureType.Name(column.type)
            raise TypeError(f"column {column.name!r} holds {values!r}; its schema says {kind}") from error
    serialized: bytes = example.SerializeToString(deterministic=True)
    return serialized
