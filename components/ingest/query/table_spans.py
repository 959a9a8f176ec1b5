"""Chooses the span of a query's tables: the given one, or the latest that all tables have."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from slipway.components.ingest.query.tables import QueryError, Table
from slipway.components.ingest.source import resolve_source
from slipway.components.ingest.spans import PLACEHOLDER, at_span, by_span, span_kind, span_number


def at_one_span(
    tables: Sequence[Table], *, span: int | str | None, root: Path
) -> tuple[Sequence[Table], int | None]:
    """Return the tables at one span, and its number as TFX counts it; None if no table has spans.

    Args:
        tables: the tables of a query; the paths of files may contain {SPAN}, or {YYYY}, {MM} and {DD}.
        span: a number or a day; `DataConfig` has checked that the tables use that kind. None: the latest span
            that all tables have.
        root: the folder that relative paths start from.

    Raises:
        QueryError: the tables use two kinds of spans, or versions, or have no span in common.
        SourceError: a table has no files.
    """
    spanned = [table for table in tables if table.kind == "files" and PLACEHOLDER.search(table.place)]
    if not spanned:
        return tables, None
    kinds = {span_kind([table.place]) for table in spanned}
    if None in kinds or len(kinds) > 1 or any("{VERSION" in table.place for table in spanned):
        raise QueryError(
            "the tables of a query must use one kind of span, {SPAN} or {YYYY}, {MM} and {DD}, and no "
            "{VERSION}",
            hint="see files of " + ", ".join(f"data.tables.{table.name}" for table in spanned),
        )
    if span is not None:
        number = span_number(span)
    else:
        files = {
            table.place: resolve_source(table.place, root=root, file_format="parquet").files
            for table in spanned
        }
        common = set.intersection(*(set(by_span(files[place], [place])) for place in files))
        if not common:
            raise QueryError("the tables of the query have no span in common", hint="name one: data.span")
        number = max(common)
    return [
        replace(table, place=at_span(table.place, number)) if table in spanned else table for table in tables
    ], number
