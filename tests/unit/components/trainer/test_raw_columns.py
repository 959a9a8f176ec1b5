"""Which raw columns a request carries, and of which a row has a list, by the schema."""

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.components.trainer.raw_columns import list_columns, serving_columns


def schema(text):
    return text_format.Parse(text, schema_pb2.Schema())


def test_request_carries_the_columns_of_the_serving_environment():
    columns = (
        'feature { name: "a" } feature { name: "b" not_in_environment: "SERVING" } feature { name: "c" }'
    )
    for default in ("", 'default_environment: "SERVING"'):
        assert serving_columns(schema(default + columns), {"c"}) == ("a",)
    named = 'default_environment: "TRAINING" feature { name: "d" in_environment: "SERVING" }'
    assert serving_columns(schema(named + columns), ()) == ("d",)


def test_column_without_a_shape_that_may_have_several_values_is_of_lists():
    found = list_columns(
        schema("""
            feature { name: "one" shape { dim { size: 1 } } }
            feature { name: "image" shape { dim { size: 784 } } }
            feature { name: "at_most_one" value_count { min: 0 max: 1 } }
            feature { name: "few" value_count { min: 0 max: 5 } }
            feature { name: "any" value_count { min: 1 } }
            feature { name: "unsaid" }
        """)
    )
    assert found == {"few", "any", "unsaid"}
