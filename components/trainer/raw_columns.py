"""Reads the raw columns of a request from the schema. Imports no TensorFlow."""

from collections.abc import Collection

from tensorflow_metadata.proto.v0 import schema_pb2

SERVING_ENVIRONMENT = "SERVING"


def serving_columns(schema: schema_pb2.Schema, apart: Collection[str]) -> tuple[str, ...]:
    """Return the raw columns of a request: the schema's SERVING environment without those in `apart`."""
    default = SERVING_ENVIRONMENT in schema.default_environment or not schema.default_environment
    return tuple(
        column.name
        for column in schema.feature
        if column.name not in apart
        and SERVING_ENVIRONMENT not in column.not_in_environment
        and (default or SERVING_ENVIRONMENT in column.in_environment)
    )


def list_columns(schema: schema_pb2.Schema) -> frozenset[str]:
    """Return the raw columns that may hold several values per row: no shape, and no limit of one value."""
    return frozenset(
        column.name
        for column in schema.feature
        if not column.HasField("shape") and column.value_count.max != 1
    )
