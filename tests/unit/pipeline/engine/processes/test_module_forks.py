"""A node asks for a module or a script in a process of its own, and the fork server starts it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
import atexit, logging, multiprocessing, os, sys, tempfile, threading, time
from concurrent.futures import ThreadPoolExecutor
from logging.handlers import MemoryHandler

def later():
    time.sleep(0.05)
    print("the child's last", file=sys.stderr)

def last(work_is_done):
    work_is_done.wait()
    print("the thread's last", file=sys.stderr)

def main(arguments):
    atexit.register(lambda: print("registered by the module", file=sys.stderr))
    if arguments[0] == "threads":
        idle = ThreadPoolExecutor(1)
        idle.submit(int).result()
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        work_is_done = threading.Event()
        threading.Thread(target=last, args=[work_is_done]).start()
        keeps = logging.getLogger("keeps")
        keeps.addHandler(MemoryHandler(100, target=logging.StreamHandler()))
        keeps.warning("kept until the end")
        threading.Timer(0.05, work_is_done.set).start()
    if arguments[0] == "leaves":
        main.kept = tempfile.TemporaryDirectory()
        multiprocessing.get_context("fork").Process(target=later).start()
        idle = multiprocessing.get_context("fork").Process(target=time.sleep, args=[60], daemon=True)
        idle.start()
        print("folder", main.kept.name, "idle", idle.pid)
    print("group", os.getpgid(0), "argument", arguments[0], "variable", os.environ.get("COLOUR"))
    print("to the log", file=sys.stderr)
    if arguments[0] == "sleep":
        print("sleeping", flush=True)
        time.sleep(60)
    if arguments[0] == "raise":
        raise ValueError("no")
    return int(arguments[1])
"""

SCRIPT = """
import json, os, socket, sys

with socket.socket(fileno=os.dup(0)) as line:
    data, (output, errors), _, _ = socket.recv_fds(line, 65536, 2)
asked = json.loads(data)
os.setpgid(0, asked["group"])
os.dup2(output, 1)
os.dup2(errors, 2)
print("group", os.getpgid(0), *asked["arguments"], *sys.argv[1:2], sys.flags.isolated, *sorted(os.environ))
print("to the log", file=sys.stderr)
sys.exit(7)
"""

# A server as in fork_server.py, with one node that asks; prints what the node saw.
SERVER = """
import atexit, json, multiprocessing, os, select, signal, socket, subprocess, sys, tempfile, time
from concurrent.futures import ThreadPoolExecutor
from slipway.components import python_process
from slipway.components.isolated_script import IsolatedScript
from slipway.pipeline.engine.processes.module_forks import ModuleForks

atexit.register(lambda: print("registered by the server", file=sys.stderr))
folder = tempfile.TemporaryDirectory()
idle = multiprocessing.get_context("fork").Process(target=time.sleep, args=[60], daemon=True)
idle.start()
forks = ModuleForks()
ours, theirs = socket.socketpair()
node = os.fork()
if node == 0:
    os.setpgid(0, 0)
    ours.close()
    python_process.fork_channel = theirs
    environment = {**os.environ, "COLOUR": "green", "PYTHONPATH": sys.argv[1]}
    def one_of_many(number):
        large = {**environment, **{f"BALLAST_{place}": "x" * 60_000 for place in range(4)}}
        return python_process.start_module("asked", ["hello", str(number)], environment=large, may_fork=True)

    if sys.argv[2] == "at once":
        with ThreadPoolExecutor(8) as threads:
            processes = list(threads.map(one_of_many, range(8)))
        for each in processes:
            each.stdout.read()
        print(json.dumps({"codes": [each.wait() for each in processes]}), flush=True)
        os._exit(0)
    if sys.argv[2] == "script":
        process = IsolatedScript(sys.argv[1] + "/script.py", {"COLOUR": "green"}).start(["hello"])
    else:
        process = python_process.start_module("asked", sys.argv[2:], environment=environment, may_fork=True)
    seen = {"kind": type(process).__name__, "own_group": os.getpgid(0), "pid": process.pid}
    if sys.argv[2] == "sleep":
        seen["first"] = process.stdout.readline() + process.stdout.readline()
        seen["running"] = process.poll()
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            seen["timed_out"] = True
        process.terminate()
        seen["code"] = process.wait(timeout=60)
        process.kill()
    else:
        seen["printed"] = process.stdout.read()
        seen["code"] = process.wait()
    print(json.dumps(seen), flush=True)
    os._exit(0)
theirs.close()
forks.serve(ours, node=node)
while True:
    readable, _, _ = select.select(forks.descriptors(), [], [], 0.05)
    for descriptor in readable:
        forks.answer(descriptor)
    pid, status = os.waitpid(-1, os.WNOHANG)
    if forks.owns(pid):
        forks.ended(pid, os.waitstatus_to_exitcode(status))
    if pid == node:
        break
assert os.path.isdir(folder.name) and idle.is_alive(), "a fork has ended what is the server's"
"""


@pytest.fixture
def node_saw(project, tmp_path):
    def call(*arguments):
        (tmp_path / "asked.py").write_text(MODULE, encoding="utf-8")
        (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
        finished = subprocess.run(
            [sys.executable, "-P", "-c", SERVER, str(tmp_path), *arguments],
            env={**os.environ, "PYTHONPATH": str(project)},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return {**json.loads(finished.stdout.splitlines()[-1]), "log": finished.stderr}

    return call


def test_module_gets_its_arguments_and_variables_and_tells_its_code(node_saw):
    seen = node_saw("hello", "7")
    assert seen["kind"] == "ForkedProcess"
    assert seen["printed"].split() == [
        "group", str(seen["own_group"]), "argument", "hello", "variable", "green"
    ]  # fmt: skip
    assert seen["code"] == 7
    assert "to the log" in seen["log"]


def test_requests_that_threads_send_at_once_do_not_mix_however_large_they_are(node_saw):
    assert node_saw("at once")["codes"] == list(range(8))


def test_script_gets_an_interpreter_that_is_no_fork_and_tells_its_code(node_saw):
    seen = node_saw("script")
    printed = seen["printed"].split()
    assert printed[:5] == ["group", str(seen["own_group"]), "hello", "--ahead", "1"]
    assert "COLOUR" in printed
    assert "PYTHONPATH" not in printed
    assert seen["code"] == 7
    assert "to the log" in seen["log"]


@pytest.mark.parametrize("ends", ["hello", "raise"])
def test_what_the_module_has_registered_is_called_at_its_end_but_not_the_servers(node_saw, ends):
    log = node_saw(ends, "0")["log"]
    assert log.count("registered by the module") == 1
    assert log.count("registered by the server") == 1, "at the server's own end"


def test_what_the_module_leaves_to_finalizers_and_multiprocessing_is_ended_but_not_the_servers(node_saw):
    seen = node_saw("leaves", "0")
    _, folder, _, idle = seen["printed"].split()[-4:]
    assert "the child's last" in seen["log"]
    assert not Path(folder).exists()
    assert not Path("/proc", idle).exists()


def test_a_modules_threads_are_waited_for_unless_they_are_daemons_and_its_log_is_written(node_saw):
    log = node_saw("threads", "0")["log"].splitlines()
    assert [line for line in log if line in {"the thread's last", "registered by the module"}] == [
        "the thread's last",
        "registered by the module",
    ]
    assert "kept until the end" in log


def test_module_that_raises_ends_with_code_1_and_its_traceback_in_the_log(node_saw):
    seen = node_saw("raise")
    assert seen["code"] == 1
    assert "ValueError: no" in seen["log"]


def test_module_can_be_waited_for_and_ended(node_saw):
    seen = node_saw("sleep")
    assert "sleeping" in seen["first"]
    assert seen["running"] is None
    assert seen["timed_out"]
    assert seen["code"] == -15
