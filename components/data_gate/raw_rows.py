"""Where in the raw files the rows stand that show a finding. Reads them again, as Ingest does."""

import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from components.data_gate.finding import Finding, RowQuery, SampleRow
from components.errors import ComponentError
from components.ingest.blocks import Block, InputFile
from components.ingest.column_types import Columns, ColumnType
from components.ingest.formats import format_of
from components.ingest.options import Options

_log = logging.getLogger(__name__)

# So many rows of each finding are shown; for rare ones this much of the files is searched, no more.
MOST_ROWS = 5
MOST_BYTES = 256 << 20
_SHOWN = 60


@dataclass
class _Search:
    query: RowQuery
    rows: list[SampleRow] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return len(self.rows) >= MOST_ROWS


def with_rows(
    findings: Sequence[Finding], *, files: Sequence[str], features: Iterable[str], options: str
) -> tuple[Finding, ...]:
    """The findings with up to five rows that show each, where they have a query.

    Args:
        findings: in any order; the order is kept.
        files: paths of the raw files; those that are not on this machine are left out.
        features: the columns that became features.
        options: how Ingest read them, JSON of its `Options`.
    """
    searches = {id(finding): _Search(finding.query) for finding in findings if finding.query}
    here = [path for path in map(Path, files) if path.is_file()] if searches else []
    left_bytes = MOST_BYTES
    # As text: what a column holds need not be found out once more, and text is what is looked for.
    known = dict.fromkeys(features, ColumnType.TEXT)
    for path in here:
        open_searches = [search for search in searches.values() if not search.is_done]
        if not open_searches or left_bytes <= 0:
            break
        try:
            left_bytes -= _search_file(path, Options.from_json(options), known, open_searches, left_bytes)
        except (ComponentError, OSError) as error:
            # The rows only help to find the cause; that it is there is known without them.
            _log.warning("%s could not be searched for rows: %s", path, error)
    return tuple(
        replace(finding, rows=tuple(searches[id(finding)].rows)) if id(finding) in searches else finding
        for finding in findings
    )


def _search_file(
    path: Path, options: Options, known: Columns, searches: Sequence[_Search], most_bytes: int
) -> int:
    file = InputFile(name=str(path), path=path)
    reader = format_of(options)
    columns = reader.infer(file, options, known)
    position = before = 0
    for block in reader.read(file, options, columns):
        for search in searches:
            if not search.is_done:
                found = _rows_of(block, search.query, path.name, before)
                search.rows += itertools.islice(found, MOST_ROWS - len(search.rows))
        before += block.rows
        position = block.position
        if position > most_bytes or all(search.is_done for search in searches):
            break
    return position


def _rows_of(block: Block, query: RowQuery, name: str, before: int) -> Iterator[SampleRow]:
    column = block.columns.get(query.column)
    for index, cell in enumerate(_cells(column) if column is not None else ()):
        if matches(cell, query):
            line = block.find(index).line
            yield SampleRow(name, line, before + index, str(cell if cell is not None else "")[:_SHOWN])


def _cells(column: pa.Array) -> Iterator[Any]:
    for cell in column.to_pylist():
        value = cell[0] if isinstance(cell, list) and len(cell) == 1 else cell
        yield value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def matches(cell: Any, query: RowQuery) -> bool:
    """Whether a cell shows what is looked for.

    Args:
        cell: text, a number, None, or a list of several values.
        query: what is looked for.
    """
    if isinstance(cell, list) and cell:
        return any(matches(each, query) for each in cell)
    is_missing = cell is None or cell in ("", [])
    if query.is_missing or is_missing:
        return query.is_missing and is_missing
    if query.values:
        return str(cell) in query.values
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return False
    is_below = query.below is not None and number < query.below
    return is_below or (query.above is not None and number > query.above)
