"""A node's process never returns to the server; what a node does is seen with real ones."""

import os
import socket
import sys

import pytest

from slipway.pipeline.engine.launcher import Start
from slipway.pipeline.engine.processes.node_process import NodeProcess


class ClosesItsOutput(NodeProcess):
    """A node whose code closes what it prints to, for which Python raises no OSError."""

    def launch(self, compiled):
        sys.stdout.close()
        sys.stderr.close()
        if compiled.fails:
            raise RuntimeError("no such column")
        return {"state": "complete", "execution_id": None, "outputs": {}}


class Compiled:
    run_id = "r"

    def __init__(self, fails):
        self.fails = fails


@pytest.mark.parametrize(("fails", "state", "code"), [(False, "complete", 0), (True, "failed", 1)])
def test_node_that_closes_its_output_ends_with_its_result(tmp_path, fails, state, code):
    paths = {name: str(tmp_path / name) for name in ("log", "progress", "left", "state")}
    node = ClosesItsOutput(Start(node="A", attempt=1, **paths))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server, pid = os.getpid(), os.fork()
        if pid == 0:
            try:
                node.become(Compiled(fails), server=server, forks=theirs, unseeded=b"")
            finally:
                os._exit(99)  # it has returned
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == code
    assert node.take_result()["state"] == state
