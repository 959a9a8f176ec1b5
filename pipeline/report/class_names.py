"""The names of the classes that a run's model predicts, if the run has them anywhere.

Reads the schema with the messages' own package: TensorFlow Transform takes seconds to import.
"""

from pathlib import Path

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.pipeline.report.artifacts import folders, read_bytes, read_json
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.run_target import KeptSettings


def class_names(record: RunRecord) -> tuple[str, ...]:
    """The names in the order of their codes; empty if they are unknown.

    They are those of the workload (`transform.classes`), else what the vocabulary holds by which the label
    became a number: one that has the name of the label, of a transformed label that is nothing but its codes.

    Args:
        record: the run; one of another pipeline than a workload's tells neither.

    Raises:
        OSError, ValueError: a file of the TransformGraph cannot be read.
    """
    settings = record.target.settings or KeptSettings()
    if settings.transform.classes:
        return settings.transform.classes
    label, raw_label = settings.transform.label, settings.data.label
    if not isinstance(label, str):  # of several outputs
        return ()
    for folder in folders(record, "TransformGraph"):
        if label and (names := _vocabulary(folder, label, (label, raw_label))):
            return names
    return ()


def _vocabulary(graph: Path, label: str, called: tuple[str, ...]) -> tuple[str, ...]:
    """The values of the label's codes, from files that TensorFlow Transform writes; empty without them."""
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
    # TensorFlow Transform records how many codes a column has, unless they were changed since.
    domains = [feature.int_domain for feature in schema.feature if feature.name == label]
    is_code = any(domain.is_categorical and domain.max == len(names) - 1 for domain in domains)
    return names if is_code else ()
