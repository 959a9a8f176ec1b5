"""Ctrl-C, and kill -9 of the engine, of the fork server and of both; then the run is gone on with.

A command that is killed has a server that imported TFX by itself, as a user's have.
"""

import json
import os
import shlex
import signal
import time
from pathlib import Path

import pytest
from warmed import start_warmed

from slipway.pipeline.engine.processes.os_processes import children
from slipway.pipeline.runs.history import History

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_engine")]


def fork_server_of(engine: int) -> int:
    """The process id of an engine's fork server."""
    return next(
        p
        for p in children(engine)
        if b"slipway.pipeline.engine.processes.fork_server" in Path(f"/proc/{p}/cmdline").read_bytes()
    )


def start_and_hang(toy, *arguments):
    """Starts a run, and waits until its second node hangs."""
    (toy.folder / "hangs").unlink(missing_ok=True)
    engine = toy.start(*arguments)
    toy.begins("hangs")
    return engine


def wait_until(true):
    """Waits for a condition; that it comes true is what matters, and pytest has a limit for all tests."""
    while not true():
        time.sleep(0.05)


@pytest.mark.external  # one kill at a time, and what is done after it, is seen below and in test_faults.py
def test_a_run_survives_every_kill(toy, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(toy, "warm", None)
        survive_kills(toy)

    # The fork server: the run fails with the cause, and says how to go on.
    engine = start_and_hang(toy, "resume")
    [server] = children(toy.warm.pid)
    os.kill(server, signal.SIGKILL)
    told = engine.communicate()[1]
    assert engine.returncode == 1
    assert "Hang: The process that starts the nodes was ended by SIGKILL, by a person, or" in told
    assert told.splitlines()[-1].startswith("hint: python local_runner.py resume ")
    assert toy.left() == []
    assert (toy.node("Make").state, toy.node("Hang").state, toy.node("Push").state) == (
        "complete", "failed", "skipped",
    )  # fmt: skip

    # Ctrl-C: what runs may save, nothing is left, the run can be gone on with.
    engine = start_and_hang(toy, "resume")
    engine.send_signal(signal.SIGINT)
    told = engine.communicate()[1]
    assert engine.returncode == 130
    assert toy.lines("saved") == ["saved"]
    assert (toy.record().state, toy.node("Hang").state, toy.node("Hang").why) == (
        "interrupted", "skipped", "interrupted",
    )  # fmt: skip
    assert toy.left() == []

    toy.get_well()
    words = shlex.split(told.splitlines()[-1].removeprefix("hint: python local_runner.py "), comments=True)
    done = start_warmed(toy.warm, words, environment=toy.environment)
    told = done.communicate()[1]
    assert done.returncode == 0, told
    assert toy.record().state == "complete"
    assert toy.record().resumed == 4
    # What was finished before the first kill was never done again, and what must happen happened once.
    assert toy.lines("made") == ["first 1"]
    assert toy.lines("pushed") == ["good"]


def survive_kills(toy):
    """What a command leaves when it is killed, alone and with its server, which must not outlive it."""
    # The engine: everything ends with it, and the run says so.
    engine = start_and_hang(toy, "run", "--pipeline", "toy_pipeline:hang")
    run_id = toy.record().run_id
    before_s = toy.history.alive_s(run_id)
    wait_until(lambda: toy.history.alive_s(run_id) > before_s)
    engine.kill()
    engine.communicate()
    lasted_s = toy.history.alive_s(run_id)
    wait_until(lambda: not toy.left())
    [run] = json.loads(toy.command("runs", "--json").stdout)
    assert run["state"] == "killed"
    assert run["wall_s"] == lasted_s > before_s  # until its last note, not until somebody asked

    # With its fork server at once.
    engine = start_and_hang(toy, "resume")
    server = fork_server_of(engine.pid)
    engine.kill()
    os.kill(server, signal.SIGKILL)
    engine.communicate()


# The command with a grace that no test lives to see the end of.
PATIENT = """
import sys
from slipway.pipeline.engine import attempt
attempt.GRACE_S = 3600.0
sys.path.insert(0, "tests/support")
import warmed
warmed.main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
"""


def test_a_second_interrupt_is_immediate(toy):
    arguments = ["run", "--pipeline", "toy_pipeline:deaf", "--output", str(toy.output)]
    engine = start_warmed(toy.warm, arguments, environment=toy.environment, program=["-c", PATIENT])
    toy.begins("deaf")
    engine.send_signal(signal.SIGINT)
    toy.begins("told")  # before the engine has heard of the first, both would be one
    time.sleep(1.5)
    assert engine.poll() is None, "the first one leaves a node its grace"
    engine.send_signal(signal.SIGINT)
    engine.communicate()
    assert engine.returncode == 130
    assert toy.left() == []
    assert (toy.record().state, toy.node("Deaf").state) == ("interrupted", "skipped")


def test_a_fork_server_that_is_killed_while_it_imports_leaves_the_command_that_goes_on(cold):
    toy = cold
    engine = toy.start("run", "--pipeline", "toy_pipeline:one")
    while not (servers := toy.left()):
        time.sleep(0.05)
    os.kill(servers[0], signal.SIGKILL)
    told = engine.communicate()[1].splitlines()
    assert engine.returncode == 1
    who = "by a person, or by the system for lack of memory"  # as in a small container
    assert told[-2] == f"error: The process that starts the nodes was ended by SIGKILL, {who}."
    assert f"python local_runner.py resume {toy.record().run_id} --output {toy.output}   # see " in told[-1]
    assert toy.record().state == "failed"


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_tfx_is_imported_leaves_nothing(cold, signum):
    toy = cold
    # Started as by a script in the background, whose Ctrl-C is ignored until the run says otherwise.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    engine = toy.start("run", "--pipeline", "toy_pipeline:one")
    signal.signal(signal.SIGINT, before)
    while not (servers := toy.left()):
        time.sleep(0.05)
    # The first of its large libraries; seconds of work on the others follow.
    while b"tensorflow" not in Path(f"/proc/{servers[0]}/maps").read_bytes():
        time.sleep(0.05)
    engine.send_signal(signum)
    # How long that takes says nothing: the server is killed at once (test_server.py), but the kernel lets go
    # of a process that reads a large library only when that is read: three seconds and more, where memory was
    # short.
    engine.communicate()
    assert engine.returncode == 130
    assert toy.left() == []
    assert toy.record().nodes == [], "it did not wait for the import"


def test_a_node_that_was_done_when_the_engine_died_is_not_done_again(toy):
    """The engine was killed between the node's last deed and its own note of it, which is taken back here."""
    assert toy.run("one").returncode == 0
    record = toy.record()
    record.state, record.exit_code = "running", None
    record.node("Make").state, record.node("Make").execution_id, record.node("Make").outputs = (
        "running",
        None,
        {},
    )
    History(toy.output).save(record)
    for note in (toy.output / "cache").glob("*.json"):
        note.unlink()
    assert toy.command("resume").returncode == 0
    assert toy.node("Make").state == "complete"
    assert toy.lines("made") == ["a 1"]
