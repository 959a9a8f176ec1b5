"""What of the transformed columns is a feature, and what is wrong with a weight."""

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.components.errors import ComponentError
from slipway.components.trainer.transformed_features import features_of

SHAPE = "shape { dim { size: 1 } }"


def schema_of(weight):
    text = f'feature {{ name: "x" type: FLOAT {SHAPE} }} feature {{ name: "w" {weight} }}'
    return text_format.Parse(text, schema_pb2.Schema())


def test_columns_apart_are_no_features_whatever_they_hold():
    assert [each.name for each in features_of(schema_of("type: BYTES"), apart={"w"})] == ["x"]
    assert [each.name for each in features_of(schema_of(f"type: INT {SHAPE}"), weight="w")] == ["x", "w"]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (f"type: BYTES {SHAPE}", "the weight w is text, but must be a number"),
        ("type: FLOAT", "the weight w is missing in some rows"),
    ],
)
def test_weights_that_are_no_numbers_are_refused_in_words(column, words):
    with pytest.raises(ComponentError, match=words):
        features_of(schema_of(column), weight="w")
