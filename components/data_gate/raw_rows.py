"""Locates the rows that show a finding, by reading the raw files again as Ingest does."""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from slipway.components.data_gate.finding import Finding, RowQuery, SampleRow
from slipway.components.errors import ComponentError
from slipway.components.ingest.blocks import Block, InputFile
from slipway.components.ingest.column_types import Columns, ColumnType
from slipway.components.ingest.formats import format_of
from slipway.components.ingest.options import Options

_log = logging.getLogger(__name__)

# Rows to show for each finding, and how many bytes of the files to search at most.
MOST_ROWS = 5
MOST_BYTES = 256 << 20
# Rows with the same pair of values say little, so different pairs are preferred: stop after so many repeats.
_MOST_ALIKE = 2_000
_SHOWN = 60


@dataclass
class _Search:
    query: RowQuery
    found: list[SampleRow] = field(default_factory=list)
    alike: list[SampleRow] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return len(self.found) >= MOST_ROWS or len(self.alike) >= _MOST_ALIKE

    @property
    def rows(self) -> tuple[SampleRow, ...]:
        return tuple((self.found + self.alike)[:MOST_ROWS])

    def add(self, row: SampleRow) -> None:
        is_varied = bool(self.query.beside) and not self.query.like
        if is_varied and row.value in {each.value for each in self.found}:
            self.alike.append(row)
        else:
            self.found.append(row)


def with_rows(
    findings: Sequence[Finding],
    *,
    files: Sequence[str],
    features: Iterable[str],
    options: Mapping[str, object],
    splits: Collection[str],
) -> tuple[Finding, ...]:
    """Return the findings, with up to five sample rows for each finding that has a query.

    The search covers all splits. A finding about some splits only is marked as such (`rows_of`); if an
    earlier finding has the same query, it gets no rows but names that finding (`rows_as`).

    Args:
        findings: in any order; the order is kept.
        files: paths of the raw files; files that are not on this machine are skipped.
        features: the columns that became features.
        options: Ingest's `Options` as plain values, with which the files were read.
    """
    searches = {id(finding): _Search(finding.query) for finding in findings if finding.query}
    here = [path for path in map(Path, files) if path.is_file()] if searches else []
    left_bytes = MOST_BYTES
    # Read all columns as text: their types need not be inferred again, and the queries match text.
    known = dict.fromkeys(features, ColumnType.TEXT)
    for path in here:
        open_searches = [search for search in searches.values() if not search.is_done]
        if not open_searches or left_bytes <= 0:
            break
        try:
            left_bytes -= _search_file(path, Options.from_json(options), known, open_searches, left_bytes)
        except (ComponentError, OSError) as error:
            # The rows only help to find the cause; the finding is valid without them.
            _log.warning("%s could not be searched for rows: %s", path, error)
    rows = {key: search.rows for key, search in searches.items()}
    return tuple(_shown([(finding, rows.get(id(finding), ())) for finding in findings], frozenset(splits)))


def _shown(
    found: Sequence[tuple[Finding, tuple[SampleRow, ...]]], splits: frozenset[str]
) -> Iterator[Finding]:
    """Yield the findings with their rows, `rows_of` and `rows_as`; see `with_rows`."""
    before: list[tuple[RowQuery, str]] = []
    for finding, rows in found:
        if not rows or finding.query is None:
            yield finding
            continue
        is_wider = bool(finding.splits) and not splits.issubset(finding.splits)
        as_told = next((subject for query, subject in before if is_wider and query == finding.query), None)
        before.append((finding.query, finding.subject))
        yield replace(
            finding,
            rows=rows if as_told is None else (),
            rows_of="all splits" if is_wider else "",
            rows_as=as_told or "",
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
            rows = _rows_of(block, search.query, path.name, before)
            while not search.is_done and (row := next(rows, None)):
                search.add(row)
        before += block.rows
        position = block.position
        if position > most_bytes or all(search.is_done for search in searches):
            break
    return position


def _rows_of(block: Block, query: RowQuery, name: str, before: int) -> Iterator[SampleRow]:
    column = block.columns.get(query.column)
    for index, cell in enumerate(_cells(column) if column is not None else ()):
        if matches(cell, query) and (not query.like or _is_like(block, index, query.like)):
            shown = _text(cell)
            if query.beside:
                shown = f"{query.column} {shown}, {query.beside} {_text(_cell(block, query.beside, index))}"
            yield SampleRow(name, block.find(index).line, before + index, shown)


def _text(cell: Any) -> str:
    return str(cell if cell is not None else "")[:_SHOWN]


def _is_like(block: Block, index: int, wanted: Sequence[Mapping[str, float | str | None]]) -> bool:
    return any(all(_is_same(_cell(block, name, index), row[name]) for name in row) for row in wanted)


def _is_same(cell: Any, wanted: float | str | None) -> bool:
    """Return True if a cell of a file equals a value of an Example, in which fractions are float32."""
    if _is_empty(cell) or wanted is None:
        return _is_empty(cell) and wanted is None
    if isinstance(wanted, str):
        return str(cell) == wanted
    try:
        return float(cell) == wanted or np.float32(cell) == np.float32(wanted)
    except (TypeError, ValueError):
        return False


def _cell(block: Block, name: str, index: int) -> Any:
    column = block.columns.get(name)
    return next(_cells(column.slice(index, 1)), None) if column is not None else None


def _cells(column: pa.Array) -> Iterator[Any]:
    for cell in column.to_pylist():
        value = cell[0] if isinstance(cell, list) and len(cell) == 1 else cell
        yield value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def matches(cell: Any, query: RowQuery) -> bool:
    """Return True if a cell matches the query.

    Args:
        cell: text, a number, None, or a list of several values.
    """
    if isinstance(cell, list) and cell:
        return any(matches(each, query) for each in cell)
    if query.like:
        return any(_is_same(cell, row.get(query.column)) for row in query.like)
    if query.is_missing or _is_empty(cell):
        return query.is_missing and _is_empty(cell)
    if query.values:
        return str(cell) in query.values
    if (query.below, query.above, query.within) == (None, None, None):
        return True
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return False
    if query.within is not None:
        low, high = query.within
        return (low is None or number > low) and (high is None or number <= high)
    is_below = query.below is not None and number < query.below
    return is_below or (query.above is not None and number > query.above)


def _is_empty(cell: Any) -> bool:
    return cell is None or cell in ("", [])
