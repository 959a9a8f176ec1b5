"""A preprocessing function, run by tf.Transform itself on a handful of rows."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.root import PROJECT_ROOT

Row = Mapping[str, Any]


def transformed(
    preprocessing_fn: Callable[..., Any], rows: Sequence[Row], *, schema: str | Path
) -> list[dict[str, Any]]:
    """Analyzes and transforms rows in memory, as the Transform node does with files.

    Args:
        preprocessing_fn: of the workload.
        rows: column -> list of its values, [] for an empty cell. What tf.Transform learns (means,
            vocabularies), it learns from these rows.
        schema: file of the raw columns, relative to the project's root.

    Returns:
        The transformed rows in the same order: feature -> numpy array, one entry a value.
    """
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")
    import tensorflow_transform.beam as tft_beam
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2
    from tensorflow_transform.tf_metadata import dataset_metadata

    text = (PROJECT_ROOT / schema).read_text(encoding="utf-8")
    metadata = dataset_metadata.DatasetMetadata(text_format.Parse(text, schema_pb2.Schema()))
    with tempfile.TemporaryDirectory() as folder, tft_beam.Context(temp_dir=folder):
        (found, _), _ = (list(rows), metadata) | tft_beam.AnalyzeAndTransformDataset(preprocessing_fn)
    return list(found)
