"""Locks an output folder for an engine, for several steps, or for a change of pushed versions.

Also checks the SQLite metadata store in it.
"""

import contextlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from slipway.components.lock_file import is_taken_in
from slipway.pipeline.errors import InUseError, UsageError

# Time to wait for a store that another program is writing to; the default of Python's sqlite3.
_STORE_WAIT_S = 5.0
# Time to wait for the lock of `runs`, which holds it for a moment to check whether anyone else does.
_LOCK_WAIT_S = 0.3
# Time that a step waits for an engine to end: if it failed, its orchestrator would only retry it.
_STEP_WAIT_S = 600.0
# SQLite's MAX_PATHNAME on Unix is 512, which includes the suffix of its longest file name, -journal.
_LONGEST_PATH = 504
# Up to this size, checking the whole store for damage takes less than a tenth of a second.
_CHECKED_BYTES = 32 * 2**20
# The folder in the output folder that holds one lock folder for each workload.
_PUSHES = ".pushes"


@contextlib.contextmanager
def working(output: Path, workload: str, *, run_id: str, in_steps: bool = False) -> Iterator[None]:
    """Lock an output folder, and the versions that a workload pushed from there, for a run.

    Args:
        workload: the workload's name, or that of another pipeline.
        in_steps: whether this is a step. Several steps may work there at the same time; a step waits for an
            engine.

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
    """Lock the versions or the baseline of one workload; runs of other workloads continue.

    Args:
        run_id: the operation, e.g. `rollback`.

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
    """Lock an output folder exclusively: no run is at work, and nobody changes pushed versions.

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
    """Lock a folder for this process. The kernel releases the lock when the process ends in any way.

    Args:
        run_id: what holds the lock, for the message to others that fail to take it.
        shared: whether others with a shared lock may hold it at the same time. A shared lock is waited for
            longer.
        what: what is locked, in the words of that message; empty: the folder.
        wait_s: seconds to wait for the lock, >= 0; None: the default for shared or exclusive locks.

    Raises:
        InUseError: another engine holds the lock; names the owner.
        UsageError: the folder cannot be written.
    """
    path = output / ".lock"
    try:
        output.mkdir(parents=True, exist_ok=True)
        # Not through a symbolic link, which may lead to any of the user's files.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        if os.path.islink(path):  # noqa: PTH114  (False where the folder may not be looked into)
            raise UsageError(f"{path} is a link, and must be a file.", hint=f"rm {path}") from error
        other = "choose another folder with --output"
        user_id = path.lstat().st_uid if os.path.lexists(path) else os.geteuid()
        if isinstance(error, PermissionError) and user_id != os.geteuid():  # as after a run with sudo
            raise UsageError(
                f"{path} cannot be written: it belongs to user {user_id}, and you are user {os.geteuid()}.",
                hint=f"one output folder is for one user: have all of it given to you (chown -R), or {other}",
            ) from error
        why = "it is no folder" if isinstance(error, FileExistsError) else error.strerror
        raise UsageError(f"{output} cannot be written: {why}.", hint=other) from error
    try:
        try:
            usual_s = _STEP_WAIT_S if shared else _LOCK_WAIT_S
            is_taken = is_taken_in(usual_s if wait_s is None else wait_s, descriptor, shared=shared)
        except OSError as error:  # e.g. a network file system without locks
            raise UsageError(
                f"{output} cannot be locked: {error.strerror}.",
                hint="choose a folder on a disk of this machine with --output",
            ) from error
        if not is_taken:
            owner, remedy = _owner(path)
            raise InUseError(
                f"{what or output} is in use by {owner}.",
                hint=f"{remedy}, or choose another folder with --output",
            )
        # The content only names the owner. Ignore a full disk: otherwise `gc` could not make room.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "run_id": run_id}).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_locked(output: Path, *, or_by_steps: bool = False) -> bool:
    """Return True if an engine is at work in that folder; `or_by_steps`: also if steps are."""
    try:
        descriptor = os.open(output / ".lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return not is_taken_in(0, descriptor, shared=not or_by_steps)
    except OSError:  # nothing can be locked here, so no engine is at work
        return False
    finally:
        os.close(descriptor)


def is_at_work(output: Path, run_id: str) -> bool:
    """Return True if an engine is at work in that folder, unless it says that it runs another run."""
    if not is_locked(output):
        return False
    owner = _noted(output / ".lock")
    return owner is None or not _is_run(owner[0]) or owner[0] == run_id


def _is_run(run_id: str) -> bool:
    """Return True if what holds a lock is one run, rather than a sweep's runs or another command."""
    return run_id[:1].isdigit()


def _noted(path: Path) -> tuple[str, int] | None:
    """Return what a lock's file names as its holder, and the process; None if it names none."""
    try:
        owner = json.loads(path.read_text(encoding="utf-8"))
        return str(owner["run_id"]), int(owner["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _owner(path: Path) -> tuple[str, str]:
    """Return who holds a lock, and what ends that, as texts."""
    owner = _noted(path)
    if owner is None:
        return "another run", "wait for it"
    run_id, pid = owner
    told = f"process {pid} ({f'run {run_id}' if _is_run(run_id) else run_id})"
    if _is_stopped(pid):
        return f"{told}, which is stopped", f"continue it: fg in its terminal, or kill -CONT {pid}"
    return told, "wait for it"


def _is_stopped(pid: int) -> bool:
    """Return True if a process is stopped, as by a terminal's ^Z; False if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return fields.rpartition(")")[2].split()[:1] == ["T"]


def check_store(path: Path) -> None:
    """Check that the SQLite store is undamaged and not in use.

    Raises:
        InUseError: it is locked by another program.
        UsageError: the file is damaged, not a database, or may not be written; or as `_is_there`.
    """
    if not _is_there(path):
        return
    if not os.access(path, os.W_OK):  # SQLite would open it for reading, and not refuse the write lock
        raise UsageError(
            f"{path} cannot be written.",
            hint=f"let user {os.geteuid()} write it (chmod, chown), or choose another folder with --output",
        )
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=_STORE_WAIT_S)) as connection:
            # Take the write lock and release it: reading alone would not notice a hanging writer.
            connection.execute("BEGIN IMMEDIATE")
            damage = _damage(connection) if path.stat().st_size < _CHECKED_BYTES else ""
            connection.rollback()
    except sqlite3.OperationalError as error:
        is_held = "locked" in str(error)
        waited = f" (waited {_STORE_WAIT_S:.0f} s)" if is_held else ""
        remedy = "end the program that holds it (`fuser` names it)" if is_held else "check that disk"
        raise (InUseError if is_held else UsageError)(
            f"{path} cannot be used: {error}{waited}.",
            hint=f"{remedy}, or choose another folder with --output",
        ) from error
    except sqlite3.DatabaseError as error:
        damage = str(error)
    if damage:
        raise _damaged(path, damage)


def check_undamaged(path: Path) -> None:
    """Check like `check_store`, but ignore a file that is in use: for callers that only read.

    Raises:
        UsageError: the file is damaged or not a database; or as `_is_there`.
    """
    if not _is_there(path):
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


def _is_there(path: Path) -> bool:
    """Return True if the store is a file, False if there is none yet.

    Raises:
        UsageError: the path leads to something else or, as a link to itself, nowhere; it is longer than
            SQLite allows; or the file is empty, beside results that it once knew.
    """
    _check_length(path)
    try:
        found = path.stat()
    except FileNotFoundError:
        parent = path.resolve().parent
        if not path.is_symlink() or parent.is_dir():  # SQLite creates what a link names
            return False
        what = f"leads to {parent}, which does not exist"
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
    else:
        if stat.S_ISREG(found.st_mode):
            # To SQLite an empty file is a new store, in which the next model is compared with none.
            if not found.st_size and (path.parent / "artifacts").is_dir():
                raise _damaged(path, "it is empty, and there are results of earlier runs")
            return True
        what = "is a folder, a pipe or a device, and must be a file"
    raise UsageError(
        f"{path} {what}.",
        hint=f"move it away (`mv {path} {path}.other`), or choose another folder with --output",
    )


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
    """Return the damage that SQLite finds in the whole file; empty if there is none."""
    found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    return "" if found == "ok" else " ".join(found.split())


def has_execution(path: Path, execution_id: int) -> bool:
    """Return True if the SQLite store has that execution as done; does not import ML Metadata.

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
