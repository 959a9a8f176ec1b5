"""A process that a fork server starts. In test_module_forks.py a real server starts real ones."""

import json
import os
import socket
import subprocess
import threading

import pytest

from slipway.components.python_process import ForkedProcess


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
