"""A process that a fork server starts. In test_module_forks.py a real server starts real ones."""

import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from slipway.components.python_process import ForkedProcess

# A module that is never torn down, and what the user's code left running and registered.
ENDS = """
import atexit, sys, threading
from concurrent.futures import ThreadPoolExecutor
from slipway.components.python_process import end_process

class ToldAtTearDown:
    def __del__(self):
        print("torn down")

told = ToldAtTearDown()
go_on = threading.Event()
def last():
    go_on.wait(60)
    print("thread")

idle = ThreadPoolExecutor(1)
idle.submit(int).result()
threading.Thread(target=last).start()
threading.Thread(target=threading.Event().wait, daemon=True).start()
atexit.register(print, "first registered")
atexit.register(print, "last registered")
go_on.set()
end_process(7)
"""


@pytest.fixture
def ended_pid():
    """The id of a process that was there, and has been waited for."""
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
        return process.pid


@pytest.fixture
def server():
    """Answers a request with a process id; returns the process and the connection that tells of its end."""
    ours, theirs = socket.socketpair()
    told = []

    def start(pid):
        def answer():
            _, descriptors, _, _ = socket.recv_fds(ours, 1 << 16, 3)
            told.append(socket.socket(fileno=descriptors[0]))
            for each in descriptors[1:]:
                os.close(each)
            told[0].sendall(json.dumps({"pid": pid}).encode() + b"\n")

        thread = threading.Thread(target=answer)
        thread.start()
        process = ForkedProcess(theirs, "a_module", [], {})
        thread.join()
        return process, told[0]

    with ours, theirs:
        yield start
    for each in told:
        each.close()


@pytest.mark.parametrize("signal", ["terminate", "kill"])
def test_no_signal_goes_to_a_process_that_has_ended_before_the_server_says_so(server, ended_pid, signal):
    process, told = server(ended_pid)
    with process.stdout:
        getattr(process, signal)()
        told.sendall(b'{"code": 7}\n')
        assert process.wait() == 7


def test_ending_process_waits_for_threads_and_calls_what_is_registered_and_tears_nothing_down(project):
    ended = subprocess.run(
        [sys.executable, "-P", "-c", ENDS],
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (7, "")
    assert ended.stdout.splitlines() == ["thread", "last registered", "first registered"]


def test_process_whose_reader_is_gone_ends_with_its_code(project):
    code = "import sys; from slipway.components.python_process import end_process; print('x'); end_process(7)"
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        ended = subprocess.run(
            [sys.executable, "-P", "-c", code],
            env={**os.environ, "PYTHONPATH": str(project), "PYTHONUNBUFFERED": ""},
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (7, "")
