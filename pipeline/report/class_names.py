"""Finds the names of the classes that a run's model predicts.

Parses the schema with `tensorflow_metadata` directly, because TensorFlow Transform takes seconds to import.
"""

from pathlib import Path

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.pipeline.report.artifacts import folders, read_bytes, read_json
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.run_target import KeptSettings


def class_names(record: RunRecord) -> tuple[str, ...]:
    """Return the class names in the order of their codes; empty if they are unknown.

    The names are the workload's `transform.classes` or, without these, the entries of the vocabulary that
    maps the label to integers: a vocabulary named after the label, if the transformed label holds its codes
    and nothing else.

    Args:
        record: the run; a run of a pipeline that is not a workload has no class names.

    Raises:
        OSError, ValueError: a file of the TransformGraph cannot be read.
    """
    settings = record.target.settings or KeptSettings()
    label, raw_label, classes = settings.transform.label, settings.data.label, settings.transform.classes
    if not isinstance(label, str) or isinstance(classes, dict):
        return ()  # the model has several outputs, of which the page has no pictures
    if classes:
        return classes
    for folder in folders(record, "TransformGraph"):
        if label and (names := _vocabulary(folder, label, (label, raw_label))):
            return names
    return ()


def _vocabulary(graph: Path, label: str, called: tuple[str, ...]) -> tuple[str, ...]:
    """Return the vocabulary of the label from TensorFlow Transform's files; empty if there is none."""
    assets = read_json(graph / "transformed_metadata" / "asset_map")
    file = graph / "transform_fn" / "assets" / next((assets[name] for name in called if name in assets), "")
    schema_file = graph / "transformed_metadata" / "schema.pbtxt"
    if not file.is_file() or not schema_file.is_file():
        return ()
    names = tuple(read_bytes(file).decode("utf-8").removesuffix("\n").split("\n"))
    try:
        schema = text_format.Parse(read_bytes(schema_file), schema_pb2.Schema())
    except text_format.ParseError as error:
        raise ValueError(f"{schema_file.name} of the TransformGraph is damaged: {error}") from error
    # TensorFlow Transform records the number of codes of a column, unless the codes were changed afterwards.
    domains = [feature.int_domain for feature in schema.feature if feature.name == label]
    is_code = any(domain.is_categorical and domain.max == len(names) - 1 for domain in domains)
    return names if is_code else ()
