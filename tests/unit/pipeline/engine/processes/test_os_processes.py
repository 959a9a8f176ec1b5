"""Processes: found by their environment, ended with what they stand for, never another's."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.engine.processes.os_processes import (
    RUN_VARIABLE,
    children,
    end_leftovers,
    is_stopped,
    leftovers,
    signal_group,
)


@pytest.fixture
def sleeper():
    """Starts a sleeping process that belongs to a run."""
    started = []

    def start(run_folder, *command):
        environment = {**os.environ, RUN_VARIABLE: str(run_folder)}
        command = (*command, "sleep", "3600")
        process = subprocess.Popen(command, env=environment, start_new_session=True)
        started.append(process)
        # The kernel shows no environment in the middle of an exec.
        wait_until(lambda: RUN_VARIABLE.encode() in Path(f"/proc/{process.pid}/environ").read_bytes())
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def wait_until(true, limit_s: float = 60.0) -> None:
    until = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < until, "it did not come true in time"
        time.sleep(0.01)


def test_what_runs_under_the_folder_is_found_and_ended(sleeper, tmp_path):
    first, second = sleeper(tmp_path / "runs" / "a"), sleeper(tmp_path / "runs" / "b")
    assert set(leftovers(tmp_path / "runs")) == {first.pid, second.pid}
    assert end_leftovers(tmp_path / "runs") == 2
    assert (first.wait(), second.wait()) == (-signal.SIGKILL, -signal.SIGKILL)
    assert end_leftovers(tmp_path / "runs") == 0


def test_what_belongs_to_another_folder_lives_on(sleeper, tmp_path):
    other = sleeper(tmp_path / "runs-2" / "a")
    sibling = sleeper(tmp_path / "runs" / "ab")
    assert end_leftovers(tmp_path / "runs" / "a") == 0
    assert (other.poll(), sibling.poll()) == (None, None)


def test_one_run_is_ended_by_its_own_folder(sleeper, tmp_path):
    process = sleeper(tmp_path / "runs" / "a")
    assert end_leftovers(tmp_path / "runs" / "a") == 1
    assert process.wait() == -signal.SIGKILL


def test_a_stopped_leftover_is_ended_as_well(sleeper, tmp_path):
    process = sleeper(tmp_path / "runs" / "a")
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: is_stopped(process.pid))
    assert end_leftovers(tmp_path / "runs") == 1
    assert process.wait() == -signal.SIGKILL


def test_a_leftover_is_found_through_a_link_to_its_folder(sleeper, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    process = sleeper(tmp_path / "real" / "a")
    assert list(leftovers(tmp_path / "link")) == [process.pid]


def test_a_run_in_a_container_that_has_another_folder_at_that_path_lives_on(sleeper, tmp_path):
    alone = ("unshare", "--map-root-user", "--mount")
    if subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine allows no namespaces")
    runs = tmp_path / "runs"
    runs.mkdir()
    script = 'mount -t tmpfs none "$0" && mkdir "$0/runs" && exec "$@"'
    contained = sleeper(runs / "a", *alone, "sh", "-c", script, str(tmp_path))
    wait_until(lambda: b"sleep" in Path(f"/proc/{contained.pid}/cmdline").read_bytes()[:5])
    assert end_leftovers(runs) == 0
    assert contained.poll() is None


def test_this_process_is_never_its_own_leftover(tmp_path):
    code = (
        "import pathlib, sys; from slipway.pipeline.engine.processes.os_processes import leftovers; "
        "print(list(leftovers(pathlib.Path(sys.argv[1]))))"
    )
    environment = {**os.environ, RUN_VARIABLE: str(tmp_path / "a")}
    told = subprocess.check_output(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, cwd=PROJECT_ROOT, text=True
    )
    assert told == "[]\n"


def test_a_stopped_process_is_distinguished_from_a_running_and_a_gone_one(sleeper, tmp_path):
    process = sleeper(tmp_path)
    assert not is_stopped(process.pid)
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: is_stopped(process.pid))
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: not is_stopped(process.pid))
    process.kill()
    process.wait()
    assert not is_stopped(process.pid)


def test_a_group_is_reported_and_one_that_is_gone_is_noticed(sleeper, tmp_path):
    process = sleeper(tmp_path)
    assert signal_group(process.pid, 0)
    assert signal_group(process.pid, signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    assert not signal_group(process.pid, signal.SIGTERM)


def test_children_are_those_of_the_parent_only(sleeper, tmp_path):
    process = sleeper(tmp_path)
    assert process.pid in children(os.getpid())
    assert list(children(process.pid)) == []


def is_alive(pid: int) -> bool:
    """A process that ended but was not waited for has no command line any more."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


DIE = """
import os, signal, sys, time
from slipway.pipeline.engine.processes.os_processes import adopt_orphans, children, die_with_parent
parent = os.getpid()
if sys.argv[1] == "die":
    child = os.fork()
    if child == 0:
        die_with_parent(signal.SIGKILL, parent=parent)
        print(os.getpid(), flush=True)
        time.sleep(3600)
    os.read(0, 1)
else:
    adopt_orphans()
    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(0.5)
        os._exit(0)
    os.wait()
    print(len(list(children(parent))), flush=True)
"""


def test_a_child_dies_with_its_killed_parent():
    with subprocess.Popen(
        [sys.executable, "-c", DIE, "die"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT_ROOT
    ) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
    wait_until(lambda: not is_alive(child))


def test_an_orphan_becomes_the_child_of_who_adopts_orphans():
    assert subprocess.check_output([sys.executable, "-c", DIE, "adopt"], cwd=PROJECT_ROOT) == b"1\n"
