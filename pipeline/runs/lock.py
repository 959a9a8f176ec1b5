"""Locks of an output folder: for one engine, or many steps, or for a change of what is pushed."""

import contextlib
import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from slipway.pipeline.errors import UsageError

# How long to wait for a store that another program is writing to; SQLite's own default in Python.
_STORE_WAIT_S = 5.0
# `runs` holds the lock for a moment to check whether anyone else does; that alone must not block a run.
_LOCK_WAIT_S = 0.3
# A step has an orchestrator behind it, which would retry it: it waits for an engine to end.
_STEP_WAIT_S = 600.0
# MAX_PATHNAME of SQLite's file system for Unix is 512, with the end of the longest name beside: -journal.
_LONGEST_PATH = 504
# Up to this size, reading the whole store to find damage costs less than a tenth of a second.
_CHECKED_BYTES = 32 * 2**20
# In the output folder: one folder with a lock for each workload.
_PUSHES = ".pushes"


@contextlib.contextmanager
def working(output: Path, workload: str, *, run_id: str, in_steps: bool = False) -> Iterator[None]:
    """Locks an output folder, and the versions that a workload pushed from there, for a run.

    Args:
        workload: what is run, or the name of another pipeline.
        in_steps: several steps may work there at the same time; a step waits for an engine.

    Raises:
        UsageError: as `locked`.
    """
    with (
        locked(output, run_id=run_id, shared=in_steps),
        locked(_pushes(output, workload), run_id=run_id, shared=in_steps, what=f"{workload} in {output}"),
    ):
        yield


@contextlib.contextmanager
def changing_pushes(output: Path, workload: str, *, run_id: str) -> Iterator[None]:
    """Locks the versions or the baseline of one workload; runs of other workloads continue.

    Args:
        run_id: what is done, e.g. `rollback`.

    Raises:
        UsageError: as `locked`.
    """
    with (
        locked(output / _PUSHES, run_id=run_id, shared=True, what=str(output), wait_s=_LOCK_WAIT_S),
        locked(_pushes(output, workload), run_id=run_id, what=f"{workload} in {output}"),
    ):
        yield


@contextlib.contextmanager
def alone(output: Path, *, run_id: str) -> Iterator[None]:
    """Locks an output folder against everyone: no run is at work, and nobody changes what is pushed.

    Raises:
        UsageError: as `locked`.
    """
    with locked(output, run_id=run_id), locked(output / _PUSHES, run_id=run_id, what=str(output)):
        yield


def _pushes(output: Path, workload: str) -> Path:
    return output / _PUSHES / quote(workload, safe="")


@contextlib.contextmanager
def locked(
    output: Path, *, run_id: str, shared: bool = False, what: str = "", wait_s: float | None = None
) -> Iterator[None]:
    """Locks a folder for this process. The kernel releases the lock when the process ends, however it ends.

    Args:
        run_id: what it is held for, for the message to those who come too late.
        shared: others that share it may hold it at the same time; for those that do not, this waits longer.
        what: what is held, in the words of that message; empty: the folder.
        wait_s: how long to wait for it, >= 0; None: as above.

    Raises:
        UsageError: another engine holds it, or the folder cannot be written; names the owner.
    """
    path = output / ".lock"
    try:
        output.mkdir(parents=True, exist_ok=True)
        # Never through a link, which may lead to any file of the user's.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        if path.is_symlink():
            raise UsageError(f"{path} is a link, and must be a file.", hint=f"rm {path}") from error
        raise UsageError(
            f"{output} cannot be written: {error.strerror}.", hint="choose another folder with --output"
        ) from error
    try:
        try:
            usual_s = _STEP_WAIT_S if shared else _LOCK_WAIT_S
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            _take(descriptor, kind, wait_s=usual_s if wait_s is None else wait_s)
        except BlockingIOError:
            raise UsageError(
                f"{what or output} is in use by {_owner(path)}.",
                hint="wait for it, or choose another folder with --output",
            ) from None
        except OSError as error:  # such as a network file system without locks
            raise UsageError(
                f"{output} cannot be locked: {error.strerror}.",
                hint="choose a folder on a disk of this machine with --output",
            ) from error
        # Says only who holds it. On a full disk that has to wait: `gc` could not make room otherwise.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "run_id": run_id}).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, kind: int, *, wait_s: float) -> None:
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


def is_locked(output: Path) -> bool:
    """Whether an engine is at work in that folder."""
    try:
        descriptor = os.open(output / ".lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no engine works where nothing can be locked
        return False
    finally:
        os.close(descriptor)
    return False


def _owner(path: Path) -> str:
    try:
        owner = json.loads(path.read_text(encoding="utf-8"))
        run_id = str(owner["run_id"])
        return f"process {owner['pid']} ({f'run {run_id}' if run_id[:1].isdigit() else run_id})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another run"


def check_store(path: Path) -> None:
    """Checks that the SQLite store is undamaged, and not in use.

    Raises:
        UsageError: the file is damaged, no database, or locked by another program; or its path is longer than
            SQLite takes.
    """
    _check_length(path)
    if not path.exists():
        return
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=_STORE_WAIT_S)) as connection:
            # Taking the write lock, and releasing it: reading alone would not notice a hanging writer.
            connection.execute("BEGIN IMMEDIATE")
            damage = _damage(connection) if path.stat().st_size < _CHECKED_BYTES else ""
            connection.rollback()
    except sqlite3.OperationalError as error:
        waited = f" (waited {_STORE_WAIT_S:.0f} s)" if "locked" in str(error) else ""
        raise UsageError(
            f"{path} cannot be used: {error}{waited}.",
            hint="end the program that holds it (`fuser` names it), or choose another folder with --output",
        ) from error
    except sqlite3.DatabaseError as error:
        damage = str(error)
    if damage:
        raise _damaged(path, damage)


def check_undamaged(path: Path) -> None:
    """As `check_store`, but ignores a file that is in use: for those that only read.

    Raises:
        UsageError: the file is damaged, or no database; or its path is longer than SQLite takes.
    """
    _check_length(path)
    if not path.is_file():
        return
    try:
        with contextlib.closing(_for_reading(path)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master")  # fails if it is not a database
            damage = _damage(connection) if path.stat().st_size < _CHECKED_BYTES else ""
    except sqlite3.OperationalError:
        return
    except sqlite3.DatabaseError as error:
        damage = str(error)
    if damage:
        raise _damaged(path, damage)


def _check_length(path: Path) -> None:
    if (size := len(os.fsencode(path.absolute()))) > _LONGEST_PATH:
        raise UsageError(
            f"{path} is {size} bytes long; SQLite takes a path of {_LONGEST_PATH} at most.",
            hint="choose a folder with a shorter path with --output",
        )


def _for_reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _damaged(path: Path, damage: str) -> UsageError:
    return UsageError(
        f"{path} is damaged: {damage}.",
        hint=f"move it away (`mv {path} {path}.damaged`); runs start afresh, served models stay",
    )


def _damage(connection: sqlite3.Connection) -> str:
    """The damage that SQLite finds in the whole file; empty if there is none."""
    found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    return "" if found == "ok" else " ".join(found.split())


def has_execution(path: Path, execution_id: int) -> bool:
    """Whether the SQLite store has that execution as done; without importing ML Metadata.

    The table and its states are those of ML Metadata's schema 10: 3 complete, 5 cached.
    """
    if not path.exists():
        return False
    query = "SELECT 1 FROM Execution WHERE id = ? AND last_known_state IN (3, 5)"
    try:
        with contextlib.closing(_for_reading(path)) as connection:
            return connection.execute(query, (execution_id,)).fetchone() is not None
    except sqlite3.Error:
        return False
