"""Runs the training process and passes on its output."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.event_lines import read_event
from slipway.components.import_path import import_path
from slipway.components.kept_state import PREEMPTED_EXIT_CODE
from slipway.components.project import PROJECT_ROOT
from slipway.components.python_process import ending, start_module
from slipway.components.trainer.result import Result, result_in
from slipway.components.trainer.settings.compute import ComputeSettings

END_LIMIT_S = 10.0
"""Seconds that a training process may take to end after SIGTERM before it is killed."""


class TrainingPreemptedError(ComponentError):
    """The training process was preempted. It has saved what it could, and can be restarted.

    Args:
        step: complete and saved steps.
    """

    def __init__(self, step: int) -> None:
        super().__init__(f"the training process was told to stop (SIGTERM), and ended after step {step}")
        self.step = step


class TrainingProcess:
    """Runs `python -m slipway.components.trainer.train` on a job file; leaving the `with` block ends it.

    Args:
        job_file: as `TrainingJob.to_json` writes it.
        compute: the job's settings of backend and CPU devices.
        interpreter: path of the Python that trains, relative to the project's folder, or its name on the
            PATH; None: this one.

    Raises:
        ComponentError: the interpreter does not exist.
    """

    def __init__(
        self,
        job_file: Path,
        *,
        import_roots: Iterable[Path],
        compute: ComputeSettings | None = None,
        interpreter: str | None = None,
    ) -> None:
        compute = compute or ComputeSettings()
        self._process = start_module(
            "slipway.components.trainer.train",
            [str(job_file)],
            environment=environment(
                os.environ,
                import_roots=import_roots,
                backend=compute.backend,
                is_same_python=interpreter is None,
            ),
            interpreter=find_interpreter(interpreter) if interpreter else None,
            # Keras reads its backend once, on import; and a forked process with the CPU split into devices
            # was seen to wait for its input forever.
            may_fork=os.environ.get("KERAS_BACKEND", "tensorflow") == compute.backend
            and compute.cpu_devices == 1,
        )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def __enter__(self) -> "TrainingProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def wait(self, show: Callable[[str], None]) -> Result:
        """Pass every line of the process to `show` until it ends, and return the values of its "done" event.

        Raises:
            TrainingPreemptedError: the process was preempted, and can be restarted.
            ComponentError: the training failed, with its own message, or the process died without one.
        """
        last: dict[str, Any] = {}
        for line in self._process.stdout or ():
            show(line.rstrip("\n"))
            last = read_event(line) or last
        code = self._process.wait()
        if code == PREEMPTED_EXIT_CODE:
            raise TrainingPreemptedError(int(last.get("step", 0)))
        if code == 0 and last.get("event") == "done":
            return result_in(last)
        if last.get("event") == "failed":
            raise ComponentError(f"training failed: {last['message']}", hint=last["hint"])
        result = " and without a result" if code >= 0 else ""
        raise ComponentError(
            f"the training process {ending(code)}{result}", hint="the node's log has its last output"
        )


def find_interpreter(name: str) -> str:
    """Return the path of an interpreter.

    Args:
        name: an absolute path, a path relative to the project's folder, or a name on the PATH.

    Raises:
        ComponentError: there is none, or it is not executable.
    """
    path = str(PROJECT_ROOT / Path(name).expanduser()) if "/" in name else name
    found = shutil.which(path)
    if found is None:
        raise ComponentError(
            f"train.interpreter ({name!r}) is not an executable program",
            hint="name a Python that has keras, numpy, tensorflow and the backend; `make jax` makes "
            ".venv-jax/bin/python",
        )
    return found


def environment(
    inherited: Mapping[str, str],
    *,
    import_roots: Iterable[Path],
    backend: str,
    is_same_python: bool = True,
) -> dict[str, str]:
    """Return the environment variables of the training process.

    Args:
        inherited: those of this process; its log level settings are kept.
        import_roots: folders that come first on PYTHONPATH; the project's folder comes last.
        is_same_python: whether it runs in this process's interpreter.
    """
    path = import_path(
        PROJECT_ROOT,
        inherited=inherited.get("PYTHONPATH", ""),
        first=import_roots,
        is_same_python=is_same_python,
    )
    return {
        "TF_CPP_MIN_LOG_LEVEL": "2",  # errors only
        **inherited,
        "KERAS_BACKEND": backend,
        "TF_USE_LEGACY_KERAS": "0",
        "PYTHONPATH": path,
        "PYTHONUNBUFFERED": "1",
    }
