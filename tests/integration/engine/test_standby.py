"""`local_runner.py warm`: runs of the command line without the import of TFX, and nothing left of it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.engine.processes.os_processes import children

pytestmark = pytest.mark.slow


def wait_until(true):
    until = time.monotonic() + 120
    while not (value := true()):
        assert time.monotonic() < until, "it did not come true in time"
        time.sleep(0.05)
    return value


@pytest.fixture
def warm_command(cold, tmp_path, monkeypatch):
    """The command; the processes that it starts are this test's own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    def command(*words):
        arguments = [sys.executable, "local_runner.py", "warm", *words]
        return subprocess.check_output(arguments, cwd=PROJECT_ROOT, env=cold.environment, text=True)

    yield command
    command("--end")


@pytest.fixture
def waiting(tmp_path):
    """The sockets of those that have imported TFX."""
    return lambda: list((tmp_path / f"slipway-{os.getuid()}").glob("*.socket"))


def test_runs_and_steps_import_no_tfx_and_a_killed_one_leaves_nothing(cold, warm_command, waiting):
    pid = int(warm_command().split()[1])
    [address] = wait_until(waiting)
    assert f"Process {pid} " in warm_command(), "one is enough"

    assert cold.run("one", "--no-cache").returncode == 0
    log = (cold.history.folder(cold.record().run_id) / "logs" / "engine.log").read_text()
    assert "import" not in log
    wait_until(lambda: not list(children(pid)))

    begun = cold.command("step", "begin", "--pipeline", "toy_pipeline:one", "--no-cache")
    run_id = begun.stdout.strip()
    assert cold.command("step", "node", run_id, "Make").returncode == 0
    logs = list(cold.history.folder(run_id).glob("steps/*/logs/engine.log"))
    assert len(logs) == 2
    assert [each for each in logs if "import" in each.read_text()] == []
    wait_until(lambda: not list(children(pid)))

    # The engine is killed while a node runs; the process that waits stays, and ends what is left.
    engine = cold.start("run", "--pipeline", "toy_pipeline:hang", "--no-cache")
    cold.begins("attempts-hang")
    assert list(children(pid)), "the node was forked from it"
    assert warm_command("--end") == f"Ended: none; still used by a run: {pid}\n"
    engine.send_signal(signal.SIGKILL)
    engine.communicate()
    wait_until(lambda: not list(children(pid)))
    assert address.exists()

    assert warm_command("--end") == "Ended: 1\n"
    wait_until(lambda: not address.exists())


def test_unused_process_ends(warm_command, waiting):
    warm_command("--minutes", "0.1")
    wait_until(waiting)
    wait_until(lambda: not waiting())


def test_each_run_leaves_one_where_a_variable_says_so(cold, warm_command, waiting):
    environment = {**cold.environment, "CI": "false", "SLIPWAY_WARM_MINUTES": "1"}
    command = [sys.executable, "local_runner.py", "run", "--pipeline", "toy_pipeline:one", "--no-cache"]
    command += ["--output", str(cold.output)]
    subprocess.run(command, cwd=PROJECT_ROOT, env=environment, capture_output=True, check=True)
    wait_until(waiting)
    assert warm_command("--end") == "Ended: 1\n"
    wait_until(lambda: not waiting())
