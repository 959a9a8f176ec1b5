"""A copy of the project, and commands in it: all in one process, whose runs are forked from the warm one.

`python copied.py FD PID` reads them as lines from its standard input.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from watched import Finished

if TYPE_CHECKING:
    from slipway.pipeline.engine.processes.warm import Warm


_CODE = ("pipeline", "components", "schemas", "slipway", "local_runner.py", "pyproject.toml")


def copy_of(project: Path, folder: Path, *more: str) -> Path:
    """Copies the project's code, and `more` of its files and folders, to a folder; returns that."""
    for part in (*_CODE, *more):
        if (project / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(project / part, folder / part, symlinks=True, ignore=ignored)
        else:
            shutil.copy(project / part, folder / part)
    return folder


def import_path(copy: Path) -> str:
    """Where the copy's processes import from, as PYTHONPATH: the copy, and what forks them."""
    return os.pathsep.join([str(copy), str(Path(__file__).parent)])


@contextlib.contextmanager
def commands_in(copy: Path, warm: "Warm") -> Iterator[Callable[..., Finished]]:
    """Gives a function that is called with `local_runner` or `cloud_runner` and the words after it.

    Args:
        copy: the folder.
        warm: forks the servers.
    """
    line = warm._line.fileno()
    with subprocess.Popen(
        [sys.executable, "-P", __file__, str(line), str(warm.pid)],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": import_path(copy)},
        pass_fds=[line],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        asked, told = process.stdin, process.stdout
        assert asked is not None
        assert told is not None

        def call(name: str, *words: str) -> Finished:
            asked.write(json.dumps([name, *words]) + "\n")
            asked.flush()
            return Finished([f"{name}.py", *words], *json.loads(told.readline()))

        yield call
        asked.close()


def main(line: int, pid: int) -> None:
    """Carries out the commands."""
    from called import called, forked_servers
    from warmed import lent

    warm = lent(line, pid)
    with forked_servers(lambda: warm):
        for asked in sys.stdin:
            done = called(*json.loads(asked), cwd=Path.cwd())
            print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
