"""Ctrl-C while a command line is still being imported."""

import subprocess
import sys

import pytest

# Sends the signal when a module is looked for, which no test of time would hit.
INTERRUPTED_AT = """
import os, runpy, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

# Whatever the shell of the tests does with it: one that starts them in the background has it ignored.
signal.signal(signal.SIGINT, signal.SIG_IGN if {ignored} else signal.default_int_handler)
sys.meta_path.insert(0, Finder())
sys.argv = [{runner!r}, {word!r}]
runpy.run_path({runner!r}, run_name="__main__")
"""


def _ends(project, module, runner, *, word="--help", ignored=False):
    code = INTERRUPTED_AT.format(module=module, runner=str(project / runner), word=word, ignored=ignored)
    return subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("runner", ["local_runner.py", "cloud_runner.py"])
@pytest.mark.parametrize("module", ["typer", "slipway.pipeline.commands.command_line"])
def test_an_interrupt_during_the_imports_is_one_line_and_130(project, module, runner):
    ended = _ends(project, module, runner)
    assert ended.returncode == 130
    assert (ended.stdout, ended.stderr) == ("", "error: interrupted before anything began\n")


@pytest.mark.parametrize(
    "module", ["pydantic", "slipway.pipeline.commands.run", "slipway.pipeline.engine.run_end"]
)
def test_so_is_one_during_the_imports_that_only_commands_need(project, module):
    ended = _ends(project, module, "local_runner.py", word="run")
    assert ended.returncode == 130
    assert (ended.stdout, ended.stderr) == ("", "error: interrupted before anything began\n")


def test_where_the_shell_has_it_ignored_it_stays_so(project):
    ended = _ends(project, "typer", "local_runner.py", ignored=True)
    assert ended.returncode == 0
    assert "Exit codes" in ended.stdout
