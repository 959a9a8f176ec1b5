"""A script by itself: what it gets of its surroundings, and where it is asked for."""

import os
import socket

from slipway.components import isolated_script
from slipway.components.isolated_script import IsolatedScript

TELLS = """
import json, os, sys
print(json.dumps([sys.argv[1:], sorted(os.environ), sys.flags.isolated]))
"""


def test_outside_the_engine_it_is_started_with_the_process_that_it_must_not_outlive(tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text(TELLS, encoding="utf-8")
    monkeypatch.setattr(os, "environ", {"PATH": os.environ["PATH"], "PYTHONPATH": "x", "OUR_SECRET": "y"})
    process = IsolatedScript(str(tmp_path / "script.py"), {"COLOUR": "green"}).start(["a", "b"])
    with process.stdout:
        output = process.stdout.read()
    assert process.wait() == 0
    # LC_CTYPE is Python's own, where no locale is set.
    told = output.replace('"LC_CTYPE", ', "")
    assert told == f'[["{os.getpid()}", "a", "b"], ["COLOUR", "PATH"], 1]\n'


def test_in_a_node_the_fork_server_is_asked(monkeypatch):
    asked = {}

    def forked(channel, path, arguments, environment, *, is_script):
        asked.update(channel=channel, path=path, arguments=arguments, is_script=is_script)
        return "the process"

    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr(isolated_script.python_process, "fork_channel", ours)
        monkeypatch.setattr(isolated_script, "ForkedProcess", forked)
        assert IsolatedScript("script.py", {}).start(["a"]) == "the process"
    assert asked == {"channel": ours, "path": "script.py", "arguments": ["a"], "is_script": True}
