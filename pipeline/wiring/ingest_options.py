"""Turns the workload's `data` into Ingest's options: how to read files, and how to split rows."""

from slipway.components.ingest.options import MEBIBYTE, Options
from slipway.components.ingest.query.tables import SQL
from slipway.pipeline.config import DataConfig

ALL = "all"


def ingest_options(data: DataConfig) -> Options:
    """Return the options for reading and writing."""
    by = data.split_by
    split_by = {}
    if by is not None:
        split_by = by.model_dump(exclude_none=True, exclude={"key", "files"}, exclude_unset=True)
        if by.starts is not None:
            split_by["starts"] = dict(by.starts)  # keeps the None of the earliest split
    return Options(
        # A query's rows are kept as Parquet.
        format="parquet" if data.format == SQL else data.format,
        delimiter=data.delimiter,
        quote=data.quote,
        encoding=data.encoding,
        column_names=data.column_names,
        columns=data.columns,
        types=data.types,
        null_values=data.null_values,
        numbers={
            name: form.model_dump(exclude_none=True, exclude_defaults=True)
            for name, form in data.numbers.items()
        },
        dates=dict(data.dates),
        label=data.label,
        split_by=split_by,
        unlabelled_rows=data.unlabelled_rows,
        max_bad_share=data.max_bad_share,
        target_shard_bytes=data.shard_mb and data.shard_mb * MEBIBYTE,
        min_shards=data.min_shards,
        compression=data.compression,
        gzip_level=data.gzip_level,
        limits=data.limits,
    )


def split_weights(data: DataConfig) -> dict[str, int]:
    """Return the output splits and their hash buckets; none if each split has its own files."""
    by = data.split_by
    if by is None or by.key is not None or by.row is not None:
        return dict(data.split)
    if by.files is not None:
        return {}
    return dict.fromkeys(by.starts or by.parts or {}, 1)


def source_patterns(data: DataConfig) -> dict[str, str]:
    """Return the sources by input split, as `resolve_sources` takes them; none for a BigQuery query.

    For the format sql, which `query_rows` resolves, they are the files of its tables, by table name.
    """
    by = data.split_by
    if data.format == SQL:
        return {name: table.files for name, table in data.tables.items() if table.files}
    if data.source is None:
        return {}
    if by is None or by.files is None:
        return {ALL: data.source}
    return {split: f"{data.source.rstrip('/')}/{pattern}" for split, pattern in by.files.items()}
