"""Tasks side by side in several processes: who gets which, and what happens when one fails or is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from watched import listeners_of

from slipway.components import process_pool
from slipway.components.errors import ComponentError
from slipway.components.process_pool import ProcessPool, WorkerDiedError

# What is to be done, in a module that the workers find too; a task is a number here.
WORKS = """
import os, signal, sys, threading, time
from pathlib import Path

there, rest_is_done = (Path(__file__).with_name(name) for name in ("worker is there", "rest is done"))
failure_is_known = threading.Event()  # in the process of the test, which hears of its worker's

def wait_for(file):
    ends = time.monotonic() + 60
    while not file.exists() and time.monotonic() < ends:
        time.sleep(0.01)

def is_worker():
    return "works_here" not in sys.modules

def who(task, progress):
    progress(task, 10 * task)
    time.sleep(0.02)
    return os.getpid()

def as_long_as_the_rest_in_worker(task, progress):
    if is_worker():
        wait_for(rest_is_done)
    elif task == 7:
        rest_is_done.touch()
    return os.getpid()

def fail_at_2_and_late_at_1(task, progress):
    if task in (1, 2):
        time.sleep({1: 0.5, 2: 0}[task])
        raise ValueError(f"task {task}")

def until_a_worker_has_failed():
    failure_is_known.wait(60)

def fail_in_worker(task, progress):
    if is_worker():
        raise ValueError(f"task {task}")
    until_a_worker_has_failed()
    progress(task, 0)

def interrupted_beside_an_endless_one(task, progress):
    if is_worker():
        there.touch()
        time.sleep(10**6)
    wait_for(there)
    raise KeyboardInterrupt

def die_in_worker(task, progress):
    if is_worker():
        os.kill(os.getpid(), signal.SIGKILL)
    until_a_worker_has_failed()
    progress(task, 0)

def fail_once_in_worker(task, progress):
    if is_worker():
        raise MemoryError("no room")
    until_a_worker_has_failed()
    return task

def die_in_one_worker(task, progress):
    if is_worker():
        try:
            there.touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02)
    return task

class ResourceExhaustedError(Exception):
    pass

def exhausted_in_worker(task, progress):
    if is_worker():
        raise ResourceExhaustedError("no room")
    until_a_worker_has_failed()
    return task

def lacks_a_module_in_worker(task, progress):
    if is_worker():
        import no_such_module
    until_a_worker_has_failed()
    return task

def once(task, progress):
    return -task

def refuse_in_worker(task, progress):
    from slipway.components.errors import ComponentError
    if is_worker():
        raise ComponentError("these rows", hint="no")
    until_a_worker_has_failed()
    return task

def out_of_memory_at_2(task, progress):
    if task == 2:
        raise MemoryError
    return task

class Keeps:
    def __init__(self):
        self.calls = 0

    def __call__(self, task, progress):
        self.calls += 1
        time.sleep(0.02)
        return os.getpid(), self.calls

def tell_for_ever(task, progress):
    while True:
        progress(1, 1)
        time.sleep(0.05)

def has_pandas(task, progress):
    time.sleep(0.1)
    return "pandas" in sys.modules if is_worker() else None
"""

_PROJECT = Path(process_pool.__file__).resolve().parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture
def works(tmp_path, monkeypatch):
    (tmp_path / "works.py").write_text(WORKS, encoding="utf-8")
    (tmp_path / "works_here.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    import works
    import works_here  # noqa: F401

    go_on = process_pool._Turns.give_next_task

    def told(turns, threads, worker, before):
        go_on(turns, threads, worker, before)
        if before.exception() is not None:
            works.failure_is_known.set()

    monkeypatch.setattr(process_pool._Turns, "give_next_task", told)
    yield works
    del sys.modules["works"], sys.modules["works_here"]


@pytest.fixture
def processes():
    """Two of them, both ready."""
    with ProcessPool(2) as both:
        for started in both._started.values():
            started.result(timeout=60)
        yield both


def _is_worker(pid):
    try:
        return b"slipway.components.pool_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return False


def _ignore(task, rows, done_bytes):
    pass


def test_both_processes_work_and_the_results_are_in_order(works, processes):
    told = {}

    def tell(task, rows, done_bytes):
        told[task] = rows, done_bytes

    pids = list(processes.map(works.who, range(10), progress=tell))
    assert len(pids) == 10
    assert len(set(pids)) == 2
    assert os.getpid() in pids
    assert told == {task: (task, 10 * task) for task in range(10)}


def test_nothing_listens_while_processes_share_tasks(works, processes):
    before, found = listeners_of(os.getpid()), []  # servers that other tests share
    pids = processes.map(works.who, range(6), progress=lambda *_: found.extend(listeners_of(os.getpid())))
    assert len(set(pids)) == 2
    new = [each for each in found if each not in before]
    assert new == [], "tasks and results go over a pair of connected sockets"


def test_no_process_keeps_tasks_that_another_could_do(works, processes):
    pids = list(processes.map(works.as_long_as_the_rest_in_worker, range(8), progress=_ignore))
    assert pids.count(os.getpid()) == 7


def test_processes_serve_one_map_after_the_other(works, processes):
    for _ in range(3):
        assert len(set(processes.map(works.who, range(6), progress=_ignore))) == 2


def test_first_error_by_order_is_raised_whichever_was_first_in_time(works, processes):
    with pytest.raises(ValueError, match="task 1"):
        list(processes.map(works.fail_at_2_and_late_at_1, range(4), progress=_ignore))


def test_error_of_a_worker_comes_with_its_traceback_and_stops_the_rest(works, processes):
    done = []
    with pytest.raises(ValueError, match=r"task \d") as caught:
        list(processes.map(works.fail_in_worker, range(100), progress=lambda task, *_: done.append(task)))
    assert len(done) <= 1  # the one that this process was at, if it had begun one
    assert "in fail_in_worker" in str(caught.value.__cause__)


def test_killed_worker_is_an_error_and_is_not_waited_for(works, processes):
    done = []
    with pytest.raises(WorkerDiedError):
        list(processes.map(works.die_in_worker, range(100), progress=lambda task, *_: done.append(task)))
    assert len(done) <= 1


@pytest.mark.parametrize("what", ["die_in_worker", "fail_once_in_worker"])
def test_what_a_worker_could_not_do_is_done_again_alone(works, processes, caplog, what):
    found = list(
        processes.map(
            getattr(works, what), range(1, 7), progress=lambda *_: None, again=lambda task, _: -task
        )
    )
    assert processes.redone == 1
    assert len([value for value in found[:2] if value is not None and value < 0]) == 1
    assert found[2:] == [-3, -4, -5, -6]  # no more memory than before
    assert processes.others == 0
    assert "redone in one process, in smaller batches" in caplog.text
    # And the next ones too.
    assert set(processes.map(works.who, range(4), progress=_ignore)) == {os.getpid()}
    assert list(processes.map(works.who, range(4), progress=_ignore, again=works.once)) == [0, -1, -2, -3]
    assert processes.redone == 1


def test_no_task_is_lost_to_a_worker_whose_turn_comes_late(works, monkeypatch):
    go_on = process_pool._Turns.give_next_task

    def late(*given):
        time.sleep(0.1)
        go_on(*given)

    with ProcessPool(4) as all_four:
        for started in all_four._started.values():
            started.result(timeout=60)
        monkeypatch.setattr(process_pool._Turns, "give_next_task", late)
        found = all_four.map(works.die_in_one_worker, range(1, 31), progress=_ignore, again=works.once)
        assert [abs(task) for task in found] == list(range(1, 31))
        assert all_four.redone == 1


@pytest.mark.parametrize(
    ("what", "redone"), [("fail_in_worker", 0), ("exhausted_in_worker", 1), ("lacks_a_module_in_worker", 1)]
)
def test_only_what_is_the_processs_fault_is_done_again(works, processes, what, redone):
    found = processes.map(getattr(works, what), range(1, 7), progress=_ignore, again=works.once)
    if redone:
        assert [abs(task) for task in found] == list(range(1, 7))
    else:
        with pytest.raises(ValueError, match="task"):
            list(found)
    assert processes.redone == redone


def test_worker_killed_in_the_middle_of_a_message_is_one_that_died():
    worker = process_pool._Worker(None)
    with worker:
        worker._theirs.sendall(b"\0\0\0\x09half")
        worker._theirs.close()
        with pytest.raises(WorkerDiedError):
            worker._receive()


def test_refused_rows_are_not_tried_again(works, processes):
    with pytest.raises(ComponentError, match="these rows"):
        list(processes.map(works.refuse_in_worker, range(100), progress=_ignore, again=works.once))
    assert processes.redone == 0


def test_one_process_does_what_it_has_no_memory_for_again(works):
    with ProcessPool(1) as one:
        assert list(one.map(works.out_of_memory_at_2, range(4), progress=_ignore, again=works.once)) == [
            0, 1, -2, -3
        ]  # fmt: skip
        assert one.redone == 1
    with ProcessPool(1) as one, pytest.raises(ValueError, match="task 1"):
        list(one.map(works.fail_at_2_and_late_at_1, range(4), progress=_ignore, again=works.once))


def test_a_process_keeps_what_its_work_keeps(works, processes):
    found = list(processes.map(works.Keeps(), range(20), progress=_ignore))
    for pid in {pid for pid, _ in found}:
        calls = [call for who, call in found if who == pid]
        assert calls == list(range(calls[0], calls[0] + len(calls)))


def test_nobody_waits_for_a_worker_that_starts_late(works, tmp_path, monkeypatch):
    # It never says that it is ready, and ends with its line.
    module = "import os, sys\nwhile os.read(int(sys.argv[1]), 1):\n    pass\n"
    (tmp_path / "late.py").write_text(module, encoding="utf-8")
    monkeypatch.setattr(process_pool, "WORKER", "late")
    with ProcessPool(2) as both:
        assert set(both.map(works.who, range(4), progress=_ignore)) == {os.getpid()}


def test_worker_that_cannot_start_is_an_error(works, monkeypatch):
    monkeypatch.setattr(process_pool, "WORKER", "slipway.components.no_such_module")
    with ProcessPool(2) as both, pytest.raises(WorkerDiedError):
        list(both.map(works.who, range(500), progress=_ignore))


def test_workers_end_with_the_context(works):
    with ProcessPool(3) as all_three:
        started = list(all_three._started)
    assert [worker._process.returncode for worker in started] == [0, 0]


def test_an_interrupt_does_not_wait(works):
    both = ProcessPool(2)

    def interrupted():
        with both:
            [started] = both._started.values()
            started.result(timeout=60)
            list(both.map(works.interrupted_beside_an_endless_one, range(2), progress=_ignore))

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    [worker] = both._workers
    assert worker._process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("is_busy", [False, True])
def test_worker_ends_with_its_parent(works, is_busy):
    program = """
import sys, time, works
from slipway.components.process_pool import ProcessPool
with ProcessPool(2) as both:
    [(worker, started)] = both._started.items()
    started.result()
    print(worker._process.pid, flush=True)
    if len(sys.argv) > 1:
        list(both.map(works.tell_for_ever, [1, 2], progress=lambda *_: None))
    sys.stdin.read()
"""
    parent = subprocess.Popen(
        [sys.executable, "-P", "-c", program, *(["busy"] if is_busy else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(_PROJECT)])},
    )
    with parent:
        worker = int(parent.stdout.readline())
        assert _is_worker(worker)
        parent.kill()
    ends = time.monotonic() + 60
    while _is_worker(worker):
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_worker_of_ingest_imports_no_pandas(works):
    with ProcessPool(2, worker="slipway.components.ingest.worker") as both:
        [started] = both._started.values()
        started.result(timeout=60)
        assert set(both.map(works.has_pandas, range(4), progress=_ignore)) == {False, None}
