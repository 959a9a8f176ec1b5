"""Interpreters that wait: they get what a node asks, and outlive neither their server nor their line."""

import os
import signal
import subprocess
import sys

import pytest

from slipway.components.serving_check.clean_process import CLIENT
from slipway.pipeline.engine.processes.scripts_ahead import ScriptsAhead

# Waits as the serving check's client does, without its imports.
SCRIPT = f"""
import os, runpy, socket, sys
client = runpy.run_path({CLIENT.path!r})
client["bound"](int(sys.argv[2]), 0)
print("waits", file=sys.stderr, flush=True)
with socket.socket(fileno=os.dup(0)) as line:
    arguments = client["wait_for_arguments"](line)
print("got", *arguments, "in the group", os.getpgid(0), flush=True)
print("to the log", file=sys.stderr, flush=True)
sys.exit(len(arguments))
"""
SERVER = """
import sys, time
from slipway.pipeline.engine.processes.scripts_ahead import ScriptsAhead
ahead = ScriptsAhead()
ahead.start(sys.argv[1], {})
time.sleep(60)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return str(path)


def asked(ahead, script, tmp_path):
    """Gives it two arguments; its process id, its exit code, what it printed, and its log."""
    with (tmp_path / "output").open("wb") as output, (tmp_path / "log").open("wb") as log:
        node = os.getpgid(0)
        pid = ahead.give(script, {}, ["a", "b"], [output.fileno(), log.fileno()], node=node)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    ahead.ended(pid, code)
    return pid, code, (tmp_path / "output").read_text(), (tmp_path / "log").read_text()


def test_one_that_waits_gets_the_arguments_and_joins_the_group(script, tmp_path):
    ahead = ScriptsAhead()
    ahead.start(script, {})
    ahead.start(script, {})
    [waiting] = [each.process.pid for each in ahead._waiting.values()]
    assert ahead.owns(waiting, {})
    pid, code, output, log = asked(ahead, script, tmp_path)
    assert (pid, code) == (waiting, 2)
    assert output == f"got a b in the group {os.getpgid(0)}\n"
    assert log == "to the log\n"
    assert not ahead.owns(pid, {os.getpgid(0): None})


def test_where_none_waits_one_is_started_for_the_node(script, tmp_path):
    ahead = ScriptsAhead()
    assert asked(ahead, script, tmp_path)[1:3] == (2, f"got a b in the group {os.getpgid(0)}\n")


def test_one_that_was_given_away_belongs_to_its_node(script):
    ahead = ScriptsAhead()
    node = os.getpgid(0)
    pid = ahead.give(script, {}, [], [1, 2], node=node)
    assert ahead.owns(pid, {node: None})
    assert not ahead.owns(pid, {})
    assert os.waitpid(pid, 0) == (pid, 0)
    ahead.ended(pid, 0)


@pytest.mark.parametrize("is_known", [True, False])
def test_one_that_ended_while_it_waited_is_replaced(script, tmp_path, is_known):
    ahead = ScriptsAhead()
    ahead.start(script, {})
    [waiting] = [each.process.pid for each in ahead._waiting.values()]
    os.kill(waiting, signal.SIGKILL)
    os.waitpid(waiting, 0)
    if is_known:
        ahead.ended(waiting, -signal.SIGKILL)
        assert not ahead.owns(waiting, {})
    pid, code, *_ = asked(ahead, script, tmp_path)
    assert (pid != waiting, code) == (True, 2)
    ahead.ended(waiting, -signal.SIGKILL)


def test_it_ends_with_its_line(script):
    ahead = ScriptsAhead()
    ahead.start(script, {})
    [waiting] = ahead._waiting.values()
    waiting.line.close()
    assert waiting.process.wait(60) == 0


def test_it_ends_with_its_server_however_that_ends(script):
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, script], stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr.readline() == "waits\n"
        server.kill()
        # Read to the end, which is that of the last process that could write to it.
        assert server.stderr.read() == ""
