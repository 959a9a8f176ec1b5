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
# Below a node's folder, beside its outputs: where TFX keeps what executors hand back, by the same numbers.
_EXECUTOR_FOLDERS = ".system/executor_execution"
# ML Metadata's SQLite tables count with AUTOINCREMENT: the next number is one more than the one kept there.
_RAISE = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'Execution'"
_BEGIN = "INSERT INTO sqlite_sequence (name, seq) VALUES ('Execution', ?)"

_LOOKED_AT = 1000
"""How many of the newest executions are searched for dead ones: each run closes those before it."""


def settle(compiled: Compiled, *, runs: str) -> None:
    """Makes the store count beyond every existing artifact folder, and closes executions that died.

    TFX names the folder of an output by its execution's number, and writes into it whatever it holds. A store
    that is new, or is an older copy, would count again from numbers whose folders are full.

    Args:
        runs: the folder of the runs that are over, all of them: their executions cannot be running. Empty
            where others may be at work.

    Raises:
        UsageError: the store is on a server, where nothing but an execution makes it count on.
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
    """The numbers of the executions that left folders below the pipeline's root."""
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
    """Marks executions of finished runs as failed if the store says they are running."""
    # Not by a filter_query: the ML Metadata of Python 3.12 and newer has none.
    newest = mlmd.ListOptions(limit=_LOOKED_AT, order_by=mlmd.OrderByField.ID, is_asc=False)
    running = (
        execution
        for execution in store.get_executions(newest)
        if execution.last_known_state == _Execution.RUNNING
    )
    dead = [execution for execution in running if _is_of(store, execution.id, runs)]
    for execution in dead:
        execution.last_known_state = _Execution.FAILED
    if dead:
        store.put_executions(dead)


def _is_of(store: mlmd.MetadataStore, execution_id: int, runs: Path) -> bool:
    names = [
        context.name
        for context in store.get_contexts_by_execution(execution_id)
        if context.type == constants.PIPELINE_RUN_CONTEXT_TYPE_NAME
    ]
    # The store knows a resumed run by its id and a number.
    return any((runs / name.partition(".")[0]).is_dir() for name in names)
