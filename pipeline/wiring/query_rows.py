"""Finds the rows of a workload's SQL query in the output folder, or runs the query and keeps its rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from slipway.components.ingest.query import duck, result_cache
from slipway.components.ingest.query.relations import open_table
from slipway.components.ingest.query.result_cache import Result
from slipway.components.ingest.query.table_spans import at_one_span
from slipway.components.ingest.query.tables import QueryError, Table
from slipway.components.ingest.source import SourceError, resolve_source, shown
from slipway.components.nearest import nearest
from slipway.pipeline.config import DataConfig
from slipway.pipeline.fingerprint.data_digests import data_digests
from slipway.pipeline.terminal.sign_of_life import sign_of_life

FOLDER = "queries"
"""The folder of the kept rows, in the output folder."""


def query_rows(data: DataConfig, *, workload: str, root: Path, output: Path) -> Result:
    """Return the rows of a query of the format sql, as Parquet.

    They are kept by the query's text and by the identity of what it reads: files by their digests, a
    server's database by its address and `as_of`, a Delta or Iceberg table by its id and its snapshot's.
    Without `as_of`, a server's database is queried each time.

    Args:
        root: the project's root, which paths are relative to.

    Raises:
        QueryError: the query, or something it reads, is wrong, or changes while it runs; the query gives no
            row or no label; rows are split by their place and have no order; or a package is missing.
        SourceError: files that the query reads are missing.
    """
    folder = output.absolute() / FOLDER
    text = _text(data, root)
    if data.split_by is not None and data.split_by.row and not duck.is_ordered(text):
        raise QueryError(
            "data.split_by.row: the query has no ORDER BY, so its rows come in any order, and each run would "
            "split them otherwise",
            hint="end the query with ORDER BY ALL, or with columns that no two rows share; or split by a key",
        )
    written_down = [each.table(name) for name, each in data.tables.items()]
    tables, span = at_one_span(written_down, span=data.span, root=root)
    files = {table.name: _files(table, root) for table in tables}

    def digests(files: Mapping[str, Sequence[Path]]) -> dict[str, dict[str, str]]:
        memo = folder / "digests.json"
        return {name: data_digests(paths, base=root, memo=memo) for name, paths in files.items() if paths}

    before = digests(files)
    opened = {
        table.name: open_table(
            table,
            place=root / table.place,
            files=files[table.name],
            digests=before.get(table.name, {}),
        )
        for table in tables
    }
    read = {name: each.identity for name, each in opened.items()}
    query_identity = {"query": text, "tables": read, "span": span, "duckdb": duck.version()}
    key = None if None in read.values() else result_cache.key_of(query_identity)
    found = result_cache.recall(folder / workload, key) if key else None
    if found is None:
        with sign_of_life(f"{workload}: runs its query"), result_cache.draft(folder / workload) as draft:
            rows = draft / "rows"
            rows.mkdir()
            relations = {name: each.relation(draft / "copies" / name) for name, each in opened.items()}
            values = {} if span is None else {"span": span}
            written = duck.write_rows(text, relations, folder=rows, spill=draft / "spill", values=values)
            if digests({table.name: _files(table, root) for table in tables}) != before:
                raise QueryError("files were written to while the query read them", hint="run again later")
            if not written.rows:
                raise QueryError("the query gives no row", hint="try it with fewer conditions")
            found = result_cache.keep(
                folder / workload, rows, key=key, written=written, span=span, about=query_identity
            )
    if data.label not in found.columns:
        close = nearest(data.label, found.columns)
        raise QueryError(
            f"the query gives no column {data.label!r}, which data.label names"
            + (f"; nearest: {close!r}" if close else ""),
            hint=f"there are {', '.join(found.columns[:20])}",
        )
    return found


def _text(data: DataConfig, root: Path) -> str:
    """Return the SQL: the given text, that of a file, or a query for all rows of the only table."""
    if data.query is not None:
        return data.query
    if data.source is None:
        return f'SELECT * FROM "{next(iter(data.tables))}"'  # noqa: S608  (a name of letters, digits and _)
    path = root / data.source
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise QueryError(f"data.source: there is no file {shown(path)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise QueryError(f"data.source: {shown(path)} cannot be read: {error}") from error


def _files(table: Table, root: Path) -> tuple[Path, ...]:
    """Return the files of a table, by whose digests it is identified."""
    if table.kind not in ("files", "sqlite"):
        return ()
    try:
        found = resolve_source(table.place, root=root, file_format="parquet").files
    except SourceError as error:
        key = f"data.tables.{table.name}.{table.kind}"
        raise SourceError(f"{key}: {error.message}", hint=error.hint.replace("data.source", key)) from error
    if table.kind == "files":
        return found
    if len(found) > 1:
        raise QueryError(f"data.tables.{table.name}.sqlite names {len(found)} files; it must be one database")
    # SQLite's write-ahead log holds the latest changes.
    log = found[0].with_name(f"{found[0].name}-wal")
    return (*found, log) if log.is_file() and log.stat().st_size else found
