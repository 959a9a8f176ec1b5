"""Processes use a metadata store one at a time."""

import fcntl
import os
import signal
import time
from pathlib import Path

import pytest

from slipway.pipeline.engine.tfx import metadata_store_lock
from slipway.pipeline.engine.tfx.metadata_store_lock import serialize_store_calls, turns


def store_class(told, file="no/such/folder/metadata.db"):
    """A store that tells when a call begins and ends; with `None` it begins one that does not end."""

    class Store:
        def __init__(self):
            """As the real one, which makes no call when it is made."""

        def _pywrap_cc_call(self, what):
            os.write(told, b"(")
            if what is None:
                signal.pause()
            time.sleep(0.002)
            os.write(told, b")")
            return what

    serialize_store_calls(Store, "/another/run's/metadata.db")
    serialize_store_calls(Store, str(file))  # as each run of a process does
    return Store


@pytest.fixture
def told():
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def fork(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def test_calls_of_several_processes_do_not_overlap(told):
    read, write = told
    store = store_class(write)
    workers = [fork(lambda: [store()._pywrap_cc_call(n) for n in range(10)]) for _ in range(3)]
    for pid in workers:
        os.waitpid(pid, 0)
    assert os.read(read, 1000) == b"()" * 30


def test_calls_of_processes_that_know_nothing_of_each_other_do_not_overlap_where_the_file_is_the_same(
    told, tmp_path
):
    """As the steps of a run in Airflow, each of which has a fork server of its own."""
    read, write = told

    def step():
        turns.cache_clear()
        store = store_class(write, tmp_path / "metadata.db")
        for n in range(10):
            store()._pywrap_cc_call(n)

    for pid in [fork(step) for _ in range(3)]:
        os.waitpid(pid, 0)
    assert os.read(read, 1000) == b"()" * 30
    assert list(tmp_path.iterdir()) == []


def test_call_gives_what_it_gave(told):
    store = store_class(told[1])
    assert store()._pywrap_cc_call("this") == "this"


def test_turn_of_a_process_that_was_killed_is_the_next_one_s(told):
    read, write = told
    store = store_class(write)
    stuck = fork(lambda: store()._pywrap_cc_call(None))
    assert os.read(read, 1) == b"("
    os.kill(stuck, signal.SIGKILL)
    os.waitpid(stuck, 0)
    assert store()._pywrap_cc_call("next") == "next"


def test_a_folder_that_another_program_has_locked_does_not_keep_the_store_waiting(
    told, tmp_path, monkeypatch
):
    """As `flock OUTPUT local_runner.py run --output OUTPUT` does until the run ends."""
    monkeypatch.setattr(metadata_store_lock, "_FIRST_WAIT_S", 0.05)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        store = store_class(told[1], tmp_path / "metadata.db")
        assert store()._pywrap_cc_call("this") == "this"
    finally:
        os.close(descriptor)


def test_forks_of_one_process_serialize_store_calls_at_the_same_file():
    """So that runs side by side, whose fork servers are forked from one process, do not meet in the store."""
    own = Path(turns()).stat()
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        found = Path(turns()).stat()
        os.write(writing, b"same" if (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino) else b"other")
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reading, 16) == b"same"
    os.close(reading)
    os.close(writing)
