"""The features that the Transform node wrote, as its schema describes them. Imports no TensorFlow."""

from collections.abc import Collection, Mapping, Sequence

from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.components.errors import ComponentError
from slipway.components.nearest import nearest
from slipway.components.trainer.features import Feature


def features_of(
    schema: schema_pb2.Schema,
    *,
    images: Mapping[str, Sequence[int]] | None = None,
    apart: Collection[str] = (),
    weight: str | None = None,
) -> tuple[Feature, ...]:
    """Return the features that a transformed schema describes.

    Args:
        images: by the name of a column of bytes, the shape of its images, [height, width, channels].
        apart: names of columns that are not features, whatever they hold.
        weight: the name of the column with each row's weight; None: there is none.

    Raises:
        ComponentError: a column is a string or sparse, which no accelerator takes; a column of `images` does
            not hold bytes; or the weight is not a number in every row.
    """
    _require_weight(schema, weight)
    images = images or {}
    texts = {column.name for column in schema.feature if column.type == schema_pb2.BYTES}
    if wrong := sorted(set(images) - texts):
        raise ComponentError(
            f"train.images names {wrong[0]}, which is not a transformed column of bytes; there are "
            f"{', '.join(sorted(texts)) or 'none'}",
            hint="let preprocessing_fn return slipway.components.trainer.pixels.raw_pixels(image)",
        )
    return tuple(
        Feature(name=column.name, dtype="uint8", shape=tuple(images[column.name]))
        if column.name in images
        else _feature(column)
        for column in schema.feature
        if column.name not in apart
    )


def require_known(names: Collection[str], *, raw: schema_pb2.Schema, transformed: schema_pb2.Schema) -> None:
    """Reject columns that are to be no inputs but do not exist: the one that was meant would be an input.

    Args:
        names: of `transform.pass_through`, and of the group and the weight.

    Raises:
        ComponentError: a name is neither a raw nor a transformed column.
    """
    known = list(dict.fromkeys(column.name for schema in (transformed, raw) for column in schema.feature))
    for name in names:
        if name not in known:
            near = nearest(name, known, similarity=0)
            raise ComponentError(
                f"transform.pass_through: {name!r} is neither a raw nor a transformed column; "
                f"nearest: {near}",
                hint=f"correct or remove it there (or in transform.group); columns: {', '.join(known)}",
            )


def has_numbers(schema: schema_pb2.Schema, name: str | None) -> bool:
    """Whether a transformed schema has the column, with one whole number in each row."""
    return any(
        (column.name, column.type) == (name, schema_pb2.INT)
        and column.HasField("shape")
        and all(dimension.size == 1 for dimension in column.shape.dim)
        for column in schema.feature
    )


def _require_weight(schema: schema_pb2.Schema, name: str | None) -> None:
    found = next((column for column in schema.feature if column.name == name), None)
    if found is None:
        return
    if found.type == schema_pb2.BYTES:
        raise ComponentError(
            f"the weight {name} is text, but must be a number",
            hint="let preprocessing_fn make a number of it, or name another column in transform.weight",
        )
    if not found.HasField("shape"):
        raise ComponentError(
            f"the weight {name} is missing in some rows",
            hint="let preprocessing_fn give a row without one a weight, for example 0 or 1",
        )


def _feature(column: schema_pb2.Feature) -> Feature:
    dtypes = {schema_pb2.INT: "int64", schema_pb2.FLOAT: "float32"}
    if not column.HasField("shape"):
        raise ComponentError(
            f"the transformed column {column.name} is sparse", hint="make it dense in preprocessing_fn"
        )
    domain = column.int_domain
    counted = column.HasField("int_domain") and domain.is_categorical and domain.min == 0 and domain.max >= 0
    return Feature(
        name=column.name,
        dtype=dtypes.get(column.type, schema_pb2.FeatureType.Name(column.type)),
        shape=tuple(int(dimension.size) for dimension in column.shape.dim) or (1,),
        categories=int(domain.max) + 1 if counted else None,
    )
