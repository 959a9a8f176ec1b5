"""What of the transformed columns is a feature, and what is wrong with a weight."""

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.components.errors import ComponentError
from slipway.components.trainer.transformed_features import features_of, has_numbers, require_known

SHAPE = "shape { dim { size: 1 } }"


def schema_of(weight):
    text = f'feature {{ name: "x" type: FLOAT {SHAPE} }} feature {{ name: "w" {weight} }}'
    return text_format.Parse(text, schema_pb2.Schema())


@pytest.mark.parametrize(
    ("column", "has"),
    [
        (f"type: INT {SHAPE}", True),
        ("type: INT", False),
        ("type: INT shape { dim { size: 2 } }", False),
        (f"type: BYTES {SHAPE}", False),
    ],
)
def test_a_group_is_of_use_to_a_model_where_each_row_has_its_number(column, has):
    assert has_numbers(schema_of(column), "w") is has
    assert not has_numbers(schema_of(column), "v")
    assert not has_numbers(schema_of(column), None)


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


def test_a_column_to_pass_through_that_does_not_exist_is_refused_with_the_nearest():
    transformed = schema_of(f"type: FLOAT {SHAPE}")
    raw = text_format.Parse('feature { name: "customer" type: BYTES }', schema_pb2.Schema())
    require_known(["customer", "x", "w"], raw=raw, transformed=transformed)
    with pytest.raises(ComponentError) as refused:
        require_known(["custmer"], raw=raw, transformed=transformed)
    assert refused.value.message == (
        "transform.pass_through: 'custmer' is neither a raw nor a transformed column; nearest: customer"
    )
    assert refused.value.hint.endswith("columns: x, w, customer")
