"""Prepares a metadata store for a run, before its first node starts. Imports TFX."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_metadata as mlmd
from ml_metadata.proto import metadata_store_pb2
from tfx.dsl.compiler import constants
from tfx.dsl.io import fileio
from tfx.orchestration import metadata

from slipway.pipeline.engine.tfx.compile import Compiled
from slipway.pipeline.errors import UsageError
from slipway.pipeline.wiring.metadata_store import sqlite_file

_Execution = metadata_store_pb2.Execution
# Folder beside a node's outputs where TFX keeps the executors' results, numbered like the executions.
_EXECUTOR_FOLDERS = ".system/executor_execution"
# ML Metadata's SQLite tables use AUTOINCREMENT: the next id is one more than the number in sqlite_sequence.
_RAISE = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'Execution'"
_BEGIN = "INSERT INTO sqlite_sequence (name, seq) VALUES ('Execution', ?)"

_LOOKED_AT = 1000
"""Number of newest executions to search for dead ones; every run closes those before it."""


def settle(compiled: Compiled, *, runs: str) -> None:
    """Make execution ids start beyond every existing artifact folder, and close executions that died.

    TFX names an output's folder by its execution id, and writes into the folder even if it has content. A
    new store, or an older copy of one, would reuse ids whose folders are full.

    Args:
        runs: the folder of the runs, all of them finished, so that none of their executions can be running.
            Empty if others may be at work.

    Raises:
        UsageError: the store is on a server and lags behind the folders; its next id cannot be set.
    """
    highest = max(_folder_numbers(compiled), default=0)
    with metadata.Metadata(compiled.connection) as handle:
        if runs:
            _close_dead(handle.store, Path(runs))
        newest = mlmd.ListOptions(limit=1, order_by=mlmd.OrderByField.ID, is_asc=False)
        last = max((execution.id for execution in handle.store.get_executions(newest)), default=0)
    if highest > last:
        _count_from(compiled.connection, highest, root=_root(compiled))


def _root(compiled: Compiled) -> str:
    return str(compiled.ir.runtime_spec.pipeline_root.field_value.string_value)


def _folder_numbers(compiled: Compiled) -> Iterator[int]:
    """Yield the ids of the executions that left folders below the pipeline's root."""
    for node in compiled.graph.nodes:
        for key in (*node.outputs, _EXECUTOR_FOLDERS):
            folder = f"{_root(compiled)}/{node.id}/{key}"
            if fileio.isdir(folder):
                names = (str(name).strip("/") for name in fileio.listdir(folder))
                yield from (int(name) for name in names if name.isdecimal())


def _count_from(connection: Any, number: int, *, root: str) -> None:
    path = sqlite_file(connection)
    if not path:
        raise UsageError(
            f"{root} holds results of execution {number}, which the metadata store does not know: they are "
            "another store's, and new results would be mixed with them.",
            hint="choose another folder with --output, move that one away, or name the store it belongs to",
        )
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        if database.execute(_RAISE, (number,)).rowcount == 0:
            database.execute(_BEGIN, (number,))


def _close_dead(store: mlmd.MetadataStore, runs: Path) -> None:
    """Mark executions of finished runs as failed if the store says they are running."""
    # Without filter_query, which ML Metadata lacks for Python 3.12 and newer.
    newest = mlmd.ListOptions(limit=_LOOKED_AT, order_by=mlmd.OrderByField.ID, is_asc=False)
    running = (
        execution
        for execution in store.get_executions(newest)
        if execution.last_known_state == _Execution.RUNNING
    )
    dead = [execution for execution in running if is_of(store, execution.id, runs)]
    for execution in dead:
        execution.last_known_state = _Execution.FAILED
    if dead:
        store.put_executions(dead)


def is_of(store: mlmd.MetadataStore, execution_id: int, runs: Path) -> bool:
    """Return True if an execution is of a run whose record is in the folder `runs`."""
    names = [
        context.name
        for context in store.get_contexts_by_execution(execution_id)
        if context.type == constants.PIPELINE_RUN_CONTEXT_TYPE_NAME
    ]
    # In the store, a resumed run's name is its id, a dot and a number.
    return any((runs / name.partition(".")[0]).is_dir() for name in names)
