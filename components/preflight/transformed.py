"""Transform's output, as the preflight needs it: the model's inputs, and the files that contain them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.components.trainer.features import PlainFeature
from slipway.components.trainer.transformed_features import features_of

SCHEMA = "transformed_metadata/schema.pbtxt"
"""The path of the transformed examples' schema in Transform's graph."""
SPLIT = "Split-train"


@dataclass(frozen=True, kw_only=True)
class Transformed:
    """Transform's output.

    Attributes:
        features: the transformed features, including the label.
        train_files: the number of files of transformed examples of the train split; None if unknown.
        train_bytes: their total size; None if unknown.
        train_rows: the number of examples in them, as counted by a Trainer; None if no Trainer has run.
        made_otherwise: the run that made it, and which of the settings it had otherwise, in words; "" if they
            were those of the training. Then nothing but the features is given.
        changed_since: the run that made it, and which files of the code that made it have changed since, in
            words; "" if none have.
    """

    features: tuple[PlainFeature, ...]
    train_files: int | None = None
    train_bytes: int | None = None
    train_rows: int | None = None
    made_otherwise: str = ""
    changed_since: str = ""


def features_in(
    schema: str, *, images: Mapping[str, Sequence[int]], apart: Collection[str] = ()
) -> tuple[PlainFeature, ...]:
    """Return the features that a transformed schema describes.

    Args:
        schema: the text of `SCHEMA`.
        images: `train.images`.
        apart: columns that are not features, whatever they hold.

    Raises:
        ComponentError: a column is a string or sparse, or an image is not a column of bytes.
    """
    read = text_format.Parse(schema, schema_pb2.Schema())
    return tuple(feature.to_json() for feature in features_of(read, images=images, apart=apart))
