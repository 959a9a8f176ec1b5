"""Reads from the schema the raw columns of a request. Imports no TensorFlow."""

from collections.abc import Collection

from tensorflow_metadata.proto.v0 import schema_pb2

SERVING_ENVIRONMENT = "SERVING"


def serving_columns(schema: schema_pb2.Schema, apart: Collection[str]) -> tuple[str, ...]:
    """The raw columns that a request carries: the schema's SERVING environment without those `apart`."""
    default = SERVING_ENVIRONMENT in schema.default_environment or not schema.default_environment
    return tuple(
        column.name
        for column in schema.feature
        if column.name not in apart
        and SERVING_ENVIRONMENT not in column.not_in_environment
        and (default or SERVING_ENVIRONMENT in column.in_environment)
    )


def list_columns(schema: schema_pb2.Schema) -> frozenset[str]:
    """The raw columns of which a row may have several values: without a shape, and not at most one."""
    return frozenset(
        column.name
        for column in schema.feature
        if not column.HasField("shape") and column.value_count.max != 1
    )
