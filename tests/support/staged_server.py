"""A rehearsal's task server, forked from the warm process: only modules of the project are imported anew."""

import os
import sys
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[2]
_OURS = frozenset({"slipway", "workloads"})


def import_from_copy() -> None:
    """Change to the copy of the project, the first on PYTHONPATH, and import only from there."""
    folders = os.environ["PYTHONPATH"].split(os.pathsep)
    staged = next(folder for folder in folders if Path(folder, "slipway").is_dir())
    os.chdir(staged)
    for name in [name for name in sys.modules if name.partition(".")[0] in _OURS]:
        del sys.modules[name]
    here = {str(_PROJECT), *(path for path in sys.path if path.startswith(f"{_PROJECT / 'tests'}/"))}
    sys.path[:] = [staged, *(path for path in sys.path if path not in {*here, staged})]


def main(arguments: list[str]) -> None:
    """As `python -m slipway.pipeline.cloud.rehearsal.task_server` in the copy."""
    import_from_copy()
    from slipway.pipeline.cloud.rehearsal.task_server import TaskServer
    from slipway.pipeline.engine.processes.fork_server import main as serve

    serve(arguments, TaskServer)
