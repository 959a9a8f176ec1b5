"""Settings of several kinds as one parameter of a component."""

import pytest

from slipway.components.parameters import as_parameter, from_parameter

MIXED = {"share": 0.5, "none": None, "names": ["a"], "age": {"column": "t", "days": 2}, "text": "1"}


def test_values_of_any_kind_come_back_as_they_were():
    assert from_parameter(as_parameter(MIXED)) == MIXED


def test_equal_mappings_are_equal_texts():
    assert as_parameter(MIXED) == as_parameter(dict(reversed(MIXED.items())))


def test_what_is_no_mapping_is_refused():
    with pytest.raises(ValueError, match="not a JSON object"):
        from_parameter("[1]")


def test_tfx_cannot_read_back_a_mapping_of_several_kinds():
    """Which this module is for: once it can, mappings may be parameters as they are."""
    from ml_metadata.proto import metadata_store_pb2
    from tfx.orchestration import data_types_utils
    from tfx.proto.orchestration import pipeline_pb2

    written = data_types_utils.set_parameter_value(pipeline_pb2.Value(), {"share": 0.5, "names": ["a"]})
    kept = metadata_store_pb2.Value(string_value=written.field_value.string_value)
    with pytest.raises(TypeError):
        data_types_utils.get_parsed_value(kept, written.schema)
