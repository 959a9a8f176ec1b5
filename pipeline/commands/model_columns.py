"""Determines the raw columns that a pushed version takes, from its manifest and its signatures."""

import re
from collections.abc import Iterable, Mapping

from slipway.components.errors import ComponentError
from slipway.components.ingest.column_types import Columns, ColumnType
from slipway.components.pusher.manifest import Manifest
from slipway.components.saved_model.signatures import SERVE_RAW, SERVING_DEFAULT, Signature

_TYPES = {
    "float": ColumnType.FLOAT,
    "double": ColumnType.FLOAT,
    "int64": ColumnType.INT,
    "int32": ColumnType.INT,
    "string": ColumnType.TEXT,
}
_SCHEMA_TYPES = {"FLOAT": ColumnType.FLOAT, "INT": ColumnType.INT, "BYTES": ColumnType.TEXT}


def schema_types(manifest: Manifest | None) -> Columns:
    """Return the raw columns of the data with their types, from the version's manifest."""
    schema = manifest.provenance.get("schema", {}) if manifest else {}
    return {
        name: _SCHEMA_TYPES[kind] for name, kind in schema.get("columns", {}).items() if kind in _SCHEMA_TYPES
    }


def needed_columns(manifest: Manifest | None) -> tuple[str, ...]:
    """Return the raw columns that no row may lack, from the version's manifest."""
    return tuple(manifest.provenance.get("schema", {}).get("needed", ())) if manifest else ()


def date_columns(manifest: Manifest | None) -> tuple[str, ...]:
    """Return the raw columns of which all texts were ISO dates in training, from the version's manifest."""
    return tuple(manifest.provenance.get("schema", {}).get("dates", ())) if manifest else ()


def taken_columns(manifest: Manifest | None) -> tuple[str, ...]:
    """Return the raw columns that the model takes, from the version's manifest; else the needed columns."""
    signatures = manifest.provenance.get("model", {}).get("signatures", {}) if manifest else {}
    inputs = signatures[SERVE_RAW].get("inputs", ()) if SERVE_RAW in signatures else ()
    return tuple(_raw_names(inputs, schema_types(manifest)).values()) or needed_columns(manifest)


def _raw_names(arguments: Iterable[str], columns: Iterable[str]) -> dict[str, str]:
    """Map each argument of `serve_raw` to its column."""
    columns = list(columns)
    # Older versions replaced all characters of a column name but letters and digits by "_" in signatures.
    known = {re.sub(r"\W|^(?=\d)", "_", column, flags=re.ASCII): column for column in columns}
    return {each: each if each in columns else known.get(each, each) for each in arguments}


def columns_with_types(
    signatures: Mapping[str, Signature], names: Iterable[str], file_format: str
) -> Columns:
    """Return the raw columns that the model takes, with their types.

    The result is empty for TFRecord files, whose examples carry names and types.

    Raises:
        ComponentError: the model lacks the signature for this format.
    """
    if len(getattr(signatures.get(SERVING_DEFAULT), "inputs", ())) != 1:
        raise ComponentError("The model has no signature serving_default that takes serialized examples.")
    if file_format == "tfrecord":
        return {}
    if SERVE_RAW not in signatures:
        raise ComponentError(
            "The model has no signature serve_raw, so the types of its columns are not known.",
            hint="give it serialized examples: --format tfrecord",
        )
    inputs = signatures[SERVE_RAW].inputs
    columns = _raw_names(inputs, names)
    return {
        columns[argument]: _TYPES[tensor.dtype]
        for argument, tensor in inputs.items()
        if tensor.dtype in _TYPES
    }
