"""Transform's output for the model: its inputs, and the files that contain them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.components.trainer.features import PlainFeature
from slipway.components.trainer.transformed_features import features_of

SCHEMA = "transformed_metadata/schema.pbtxt"
"""Of the transformed examples, in Transform's graph."""
SPLIT = "Split-train"


@dataclass(frozen=True, kw_only=True)
class Transformed:
    """Transform's output.

    Attributes:
        features: with the label.
        train_files: of transformed examples of the train split.
        train_bytes: of them together; None: not known.
        train_rows: examples in them, as a Trainer counted them; None: none did.
    """

    features: tuple[PlainFeature, ...]
    train_files: int
    train_bytes: int | None
    train_rows: int | None = None


def features_in(
    schema: str, *, images: Mapping[str, Sequence[int]], apart: Collection[str] = ()
) -> tuple[PlainFeature, ...]:
    """The features that a transformed schema describes.

    Args:
        schema: the text of `SCHEMA`.
        images: as `train.images`.
        apart: columns that are no features, whatever they hold.

    Raises:
        ComponentError: a column is a string or sparse, or an image is no column of bytes.
    """
    read = text_format.Parse(schema, schema_pb2.Schema())
    return tuple(feature.to_json() for feature in features_of(read, images=images, apart=apart))
