"""One engine at a time for a folder, and a store that is whole and free."""

import errno
import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, nullcontext
from types import SimpleNamespace

import pytest

from slipway.components import lock_file
from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs import lock
from slipway.pipeline.runs.lock import (
    alone,
    changing_pushes,
    check_store,
    check_undamaged,
    has_execution,
    is_locked,
    locked,
    working,
)

HOLD = """
import sys, time
from pathlib import Path
from slipway.pipeline.runs.lock import locked
with locked(Path(sys.argv[1]), run_id="20260101-000000-aaaa"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def owner(tmp_path):
    """Another process that holds the folder `tmp_path / "out"`."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")], stdout=subprocess.PIPE, cwd=PROJECT_ROOT
    ) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_second_engine_is_refused_and_told_the_owner(owner, tmp_path):
    with (
        pytest.raises(UsageError, match=f"in use by process {owner.pid} .run 20260101-000000-aaaa.") as error,
        locked(tmp_path / "out", run_id="new"),
    ):
        pass
    assert error.value.hint == "wait for it, or choose another folder with --output"
    assert is_locked(tmp_path / "out")


def test_owner_that_is_stopped_is_told_with_the_way_to_continue_it(owner, tmp_path):
    owner.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, owner.pid, os.WSTOPPED | os.WNOWAIT)
    with (
        pytest.raises(UsageError, match=f"process {owner.pid} .*, which is stopped") as error,
        locked(tmp_path / "out", run_id="new", wait_s=0),
    ):
        pass
    assert f"kill -CONT {owner.pid}" in error.value.hint


def test_the_lock_of_a_killed_engine_is_free_at_once(owner, tmp_path):
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert not is_locked(tmp_path / "out")
    with locked(tmp_path / "out", run_id="next"):
        told = json.loads((tmp_path / "out" / ".lock").read_text())
    assert told == {"pid": os.getpid(), "run_id": "next"}


def test_an_owner_that_told_nothing_is_another_run(tmp_path):
    with (tmp_path / ".lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="in use by another run"), locked(tmp_path, run_id="new"):
            pass


def test_a_look_at_the_lock_refuses_no_engine(tmp_path, monkeypatch):
    monkeypatch.setattr("slipway.pipeline.runs.lock._LOCK_WAIT_S", 60.0)
    with locked(tmp_path, run_id="first"):
        pass
    look = (
        "import fcntl, sys, time; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_SH); print(1, flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", f"{look}; time.sleep(0.1)", str(tmp_path / ".lock")], stdout=subprocess.PIPE
    ) as looking:
        looking.stdout.readline()
        with locked(tmp_path, run_id="second"):
            assert is_locked(tmp_path)


def test_a_folder_that_is_unused_is_not_locked(tmp_path):
    assert not is_locked(tmp_path / "none")
    with locked(tmp_path / "out", run_id="r"):
        assert is_locked(tmp_path / "out")
    assert not is_locked(tmp_path / "out")


def test_a_folder_that_cannot_be_made_is_reported_with_its_name(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UsageError, match="file/out cannot be written: Not a directory"),
        locked(tmp_path / "file" / "out", run_id="r"),
    ):
        pass


def test_a_file_in_place_of_the_folder_is_called_that(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UsageError, match="file cannot be written: it is no folder"),
        locked(tmp_path / "file", run_id="r"),
    ):
        pass


def test_a_lock_of_another_user_is_named_with_both_users(tmp_path, monkeypatch):
    (tmp_path / ".lock").write_text("")
    own = os.geteuid()

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("slipway.pipeline.runs.lock.os.open", refuse)
    monkeypatch.setattr("slipway.pipeline.runs.lock.os.geteuid", lambda: own + 1)
    words = rf"\.lock cannot be written: it belongs to user {own}, and you are user {own + 1}\."
    with pytest.raises(UsageError, match=words) as error, locked(tmp_path, run_id="r"):
        pass
    assert "chown -R" in error.value.hint


@pytest.fixture
def store(tmp_path):
    """A store with 200 executions, the third of them complete."""
    path = tmp_path / "metadata.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE Execution (id INTEGER PRIMARY KEY, last_known_state INT, text TEXT)")
        rows = [(i, {3: 3, 5: 5}.get(i, 4), "x" * 200) for i in range(1, 201)]
        connection.executemany("INSERT INTO Execution VALUES (?, ?, ?)", rows)
    connection.close()
    return path


def test_a_good_store_and_none_are_fine(store, tmp_path):
    for check in (check_store, check_undamaged):
        check(store)
        check(tmp_path / "none.db")


@pytest.mark.parametrize(("size", "fits"), [(504, True), (505, False)])
def test_a_path_that_sqlite_does_not_take_is_refused_before_anything_starts(tmp_path, size, fits):
    room = size - len(os.fsencode(tmp_path)) - len("///metadata.db")
    store = tmp_path / ("d" * (room // 2)) / ("e" * (room - room // 2)) / "metadata.db"
    assert len(os.fsencode(store)) == size
    store.parent.mkdir(parents=True)
    with (
        nullcontext() if fits else pytest.raises(sqlite3.OperationalError),
        closing(sqlite3.connect(store)) as database,
    ):
        database.execute("CREATE TABLE t (a)")
    for check in (check_store, check_undamaged):
        with nullcontext() if fits else pytest.raises(UsageError, match="SQLite takes a path of 504 at most"):
            check(store)


@pytest.mark.parametrize("check", [check_store, check_undamaged])
def test_a_file_that_is_no_database_is_called_damaged_with_the_way_out(store, check):
    store.write_bytes(b"this is no database" * 100)
    with pytest.raises(UsageError, match=r"metadata.db is damaged: file is not a database") as error:
        check(store)
    assert error.value.hint.startswith(f"move it away (`mv {store} {store}.damaged`)")


@pytest.mark.parametrize("check", [check_store, check_undamaged])
@pytest.mark.parametrize(
    ("make", "what"),
    [
        (os.mkdir, "is a folder, a pipe or a device"),
        (os.mkfifo, "is a folder, a pipe or a device"),
        (lambda path: path.symlink_to(path), "cannot be read: Too many levels of symbolic links"),
        (lambda path: path.symlink_to(path.parent / "gone" / "db"), "leads to .*/gone, which does not exist"),
    ],
)
def test_a_store_that_is_no_file_is_called_that_and_not_busy(tmp_path, make, what, check):
    make(tmp_path / "metadata.db")
    with pytest.raises(UsageError, match=rf"metadata\.db {what}") as error:
        check(tmp_path / "metadata.db")
    assert error.value.hint.startswith("move it away")


@pytest.mark.parametrize("check", [check_store, check_undamaged])
def test_a_store_may_be_a_link_to_a_file_that_a_run_will_create(tmp_path, check):
    (tmp_path / "metadata.db").symlink_to(tmp_path / "elsewhere.db")
    check(tmp_path / "metadata.db")


@pytest.mark.parametrize("check", [check_store, check_undamaged])
def test_a_store_that_was_cut_off_is_called_damaged(store, check):
    os.truncate(store, store.stat().st_size // 2)
    with pytest.raises(UsageError, match="is damaged"):
        check(store)


@pytest.mark.parametrize("check", [check_store, check_undamaged])
def test_an_empty_store_is_called_damaged_beside_results_and_is_a_new_one_without(store, check):
    store.write_bytes(b"")
    check(store)  # as a run that was killed at its very beginning may leave it
    (store.parent / "artifacts").mkdir()
    with pytest.raises(UsageError, match="is damaged: it is empty") as error:
        check(store)
    assert error.value.hint.startswith(f"move it away (`mv {store} {store}.damaged`)")


def test_a_store_with_a_page_of_rubbish_is_called_damaged(store):
    with store.open("r+b") as stream:
        stream.seek(4096 * 2)
        stream.write(b"\xff" * 4096)
    with pytest.raises(UsageError, match="is damaged"):
        check_store(store)


def test_a_store_that_another_program_writes_to_is_called_locked(store, monkeypatch):
    monkeypatch.setattr(lock, "_STORE_WAIT_S", 0.1)
    hold = (
        "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1]); "
        "c.execute('BEGIN IMMEDIATE'); print(1, flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", f"{hold}; time.sleep(60)", str(store)], stdout=subprocess.PIPE
    ) as writer:
        writer.stdout.readline()
        with pytest.raises(UsageError, match=r"cannot be used: database is locked .waited 0 s."):
            check_store(store)
        check_undamaged(store)  # a plan only reads
        writer.kill()
    check_store(store)


def test_a_store_on_a_disk_that_fails_is_not_said_to_be_held_by_another_program(store, monkeypatch):
    def fail(*_args, **_kwargs):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(lock.sqlite3, "connect", fail)
    with pytest.raises(UsageError, match=r"metadata\.db cannot be used: disk I/O error\.") as told:
        check_store(store)
    assert told.value.hint == "check that disk, or choose another folder with --output"


def test_a_store_that_may_not_be_written_is_told_before_anything_starts(store, monkeypatch):
    # Root may write it whatever its mode is.
    monkeypatch.setattr(os, "access", lambda path, mode: path != store or mode != os.W_OK)
    with pytest.raises(UsageError, match=r"metadata\.db cannot be written") as error:
        check_store(store)
    assert error.value.hint.startswith(f"let user {os.geteuid()} write it")
    check_undamaged(store)  # a plan only reads


@pytest.mark.parametrize(("execution_id", "is_there"), [(3, True), (5, True), (4, False), (999, False)])
def test_only_a_successful_execution_is_there(store, execution_id, is_there):
    assert has_execution(store, execution_id) is is_there


def test_a_damaged_or_missing_store_has_no_execution(store, tmp_path):
    assert not has_execution(tmp_path / "none.db", 3)
    store.write_bytes(b"rubbish" * 1000)
    assert not has_execution(store, 3)


def test_steps_share_a_folder_and_keep_an_engine_out(tmp_path):
    with (
        locked(tmp_path, run_id="one", shared=True),
        locked(tmp_path, run_id="two", shared=True),
        pytest.raises(UsageError, match="in use by"),
        locked(tmp_path, run_id="engine"),
    ):
        pass
    with locked(tmp_path, run_id="engine"):
        assert is_locked(tmp_path)


def test_step_waits_for_an_engine_to_end(owner, tmp_path, monkeypatch):
    looks = []

    def look_again(_pause_s):
        looks.append(is_locked(tmp_path / "out"))
        if len(looks) == 20:
            owner.kill()
            owner.wait()

    # Of this module alone: threads of other tests sleep as well.
    monkeypatch.setattr(lock_file, "time", SimpleNamespace(monotonic=time.monotonic, sleep=look_again))
    with locked(tmp_path / "out", run_id="step", shared=True):
        assert looks == 20 * [True]


@pytest.mark.parametrize("holds", [working, changing_pushes])
def test_what_a_workload_has_pushed_is_held_by_one_at_a_time(tmp_path, holds):
    with holds(tmp_path, "taxi", run_id="20261122-1"):
        with (
            pytest.raises(UsageError, match=rf"taxi in {tmp_path} is in use by process {os.getpid()} "),
            changing_pushes(tmp_path, "taxi", run_id="rollback"),
        ):
            pass
        with changing_pushes(tmp_path, "digits", run_id="rollback"):
            pass


def test_one_run_at_a_time_works_in_a_folder_and_nobody_beside_gc(tmp_path):
    with (
        working(tmp_path, "pkg/x:make", run_id="20261122-1"),
        pytest.raises(UsageError, match=r"\(run 20261122-1\)"),
        working(tmp_path, "digits", run_id="20261122-2"),
    ):
        pass
    for holding in (
        working(tmp_path, "taxi", run_id="20261122-1"),
        changing_pushes(tmp_path, "taxi", run_id="rollback"),
    ):
        with holding, pytest.raises(UsageError, match="is in use by"), alone(tmp_path, run_id="gc"):
            pass


def test_steps_of_one_workload_work_side_by_side_and_keep_a_rollback_out(tmp_path):
    with (
        working(tmp_path, "taxi", run_id="20261122-1", in_steps=True),
        working(tmp_path, "taxi", run_id="20261122-1", in_steps=True),
        pytest.raises(UsageError, match=rf"taxi in {tmp_path} is in use by"),
        changing_pushes(tmp_path, "taxi", run_id="rollback"),
    ):
        pass


def test_lock_that_is_a_link_is_refused_and_what_it_leads_to_stays(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".lock").symlink_to(precious)
    with (
        pytest.raises(UsageError, match="is a link, and must be a file"),
        locked(tmp_path / "out", run_id="r"),
    ):
        pass
    assert not is_locked(tmp_path / "out")
    assert precious.read_text() == "kept"


def test_folder_that_cannot_be_locked_is_refused_in_words(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)

    with (
        pytest.raises(UsageError, match="cannot be locked: No locks available"),
        locked(tmp_path, run_id="x"),
    ):
        pytest.fail("it was taken for locked")
    assert not is_locked(tmp_path)


def test_folder_on_a_full_disk_can_be_locked_for_what_makes_room(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with alone(tmp_path, run_id="gc"):
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
