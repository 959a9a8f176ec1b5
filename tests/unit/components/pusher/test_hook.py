"""The command after a push: what it is told, and that its failure is."""

import sys

import pytest

from slipway.components.errors import ComponentError
from slipway.components.pusher import hook
from slipway.components.pusher.hook import run_hook
from slipway.components.pusher.versions import Published

PUSHED = Published(7, "/serving/taxi", was_there=False)


def python(code):
    return [sys.executable, "-c", code]


def test_command_gets_the_version_in_its_environment(capfd):
    code = "import os; print(*(os.environ['SLIPWAY_' + n] for n in ('WORKLOAD', 'VERSION', 'VERSION_PATH')))"
    run_hook(python(code), PUSHED, workload="taxi")
    assert capfd.readouterr().out == "taxi 7 /serving/taxi/7\n"


def test_a_script_of_the_project_is_found_wherever_the_command_is_called(monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(hook, "PROJECT_ROOT", tmp_path)
    (tmp_path / "tell.sh").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "tell.sh").chmod(0o700)
    run_hook(["./tell.sh"], PUSHED, workload="taxi")
    assert capfd.readouterr().out == f"{tmp_path}\n"


def test_no_command_is_nothing_to_do():
    run_hook([], PUSHED, workload="taxi")


def test_arguments_meet_no_shell(capfd):
    run_hook([*python("import sys; print(sys.argv[1])"), "$(id); `id`"], PUSHED, workload="taxi")
    assert capfd.readouterr().out == "$(id); `id`\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (python("raise SystemExit(3)"), "ended with code 3"),
        (["/no/such/program"], "cannot be started"),
        (python("import time; time.sleep(60)"), "took longer than 0.5 s"),
        (python("input()"), "ended with code 1"),
    ],
)
def test_command_that_fails_is_reported_and_the_version_stays_pushed(command, words):
    with pytest.raises(ComponentError, match=rf"version 7 is pushed, but push\.hook .* {words}") as raised:
        run_hook(command, PUSHED, workload="taxi", limit_s=0.5 if "sleep" in command[-1] else 60)
    assert raised.value.hint == "fix it, then resume the run"
