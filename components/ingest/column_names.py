"""Reads the column names from the head of a file, which is enough to recognise a different table."""

from collections.abc import Collection
from dataclasses import replace

from slipway.components.ingest import json_lines
from slipway.components.ingest.blocks import InputFile
from slipway.components.ingest.formats import format_of
from slipway.components.ingest.options import Options


def boolean_columns(file: InputFile, options: Options) -> frozenset[str]:
    """Return the columns that hold true and false as such, or lists of them, anywhere in a file.

    Args:
        file: a CSV, JSON Lines or Parquet file; a CSV has only texts.

    Raises:
        FileError: the file cannot be read.
    """
    if options.format == "jsonl":
        return json_lines.boolean_keys(file, options)
    if options.format == "parquet":
        from slipway.components.ingest.parquet_table import boolean_columns as of_parquet

        return of_parquet(file)
    return frozenset()


def column_names(file: InputFile, options: Options, *, wanted: Collection[str] = ()) -> tuple[str, ...]:
    """Return the columns of a file; for JSON Lines, whose objects may differ, the keys in its first 4 MB.

    Args:
        file: a CSV, JSON Lines or Parquet file.
        wanted: keys that are looked for in the rest of a file of JSON Lines, if they are not in these.

    Raises:
        FileError: the file cannot be read.
    """
    if options.format == "jsonl":
        return json_lines.first_keys(file, options, wanted=wanted)
    if options.format == "parquet":
        from slipway.components.ingest.parquet_table import names

        return names(file)
    return tuple(format_of(options).infer(file, replace(options, inferred_blocks=1), {}))
