"""Calls a command line in this process, as if it were a process of its own."""

import contextlib
import functools
import importlib.util
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from watched import Finished

from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.engine.processes.client import ForkServerClient
from slipway.pipeline.engine.processes.warm import Warm

_TESTS = str(Path(__file__).resolve().parent.parent)
# What stands for a server where the warm process has imported another copy of its modules.
_STAGED = {"slipway.pipeline.cloud.rehearsal.task_server": "staged_server"}
if Path(_TESTS).parent != PROJECT_ROOT:  # called in a copy of the project
    _STAGED["slipway.pipeline.engine.processes.fork_server"] = "staged_run"


@functools.cache
def program(name: str) -> ModuleType:
    """A file of the project's folder, as a module."""
    spec = importlib.util.spec_from_file_location(f"the_{name}", PROJECT_ROOT / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def called(
    name: str, *words: str, cwd: Path = PROJECT_ROOT, environment: Mapping[str, str] | None = None
) -> Finished:
    """Call `local_runner` or `cloud_runner`; return its output and its exit code.

    Args:
        name: of the program.
        words: its arguments.
        cwd: where it works meanwhile.
        environment: variables that it finds beside this process's.
    """
    out, err = io.StringIO(), io.StringIO()
    argv = [f"{name}.py", *words]
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in (environment or {}).items():
            patch.setenv(variable, value)
        patch.chdir(cwd)
        patch.setattr(sys, "argv", argv)
        # What a node's code may import counts for the cache: not what only tests do.
        patch.setattr(sys, "path", [each for each in sys.path if not each.startswith(_TESTS)])
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            program(name).call(program(name).app)
    return Finished(argv, ended.value.code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def forked_servers(warm: Callable[[], Warm]) -> Iterator[None]:
    """Fork the servers of the runs that this process starts in the block, so that none imports TFX.

    Args:
        warm: gives the process that they are forked from; asked where there is something to fork.
    """
    original = ForkServerClient.__init__

    @functools.wraps(original)
    def begin(self: ForkServerClient, *arguments: Any, **options: Any) -> None:
        if staged := _STAGED.get(options.get("module", "slipway.pipeline.engine.processes.fork_server")):
            given = options.get("environment") or os.environ
            path = os.pathsep.join([given["PYTHONPATH"], str(Path(__file__).parent)])
            options |= {"module": staged, "environment": {**given, "PYTHONPATH": path}}
        original(self, *arguments, **{**options, "warm": options.get("warm") or warm()})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ForkServerClient, "__init__", begin)
        yield
