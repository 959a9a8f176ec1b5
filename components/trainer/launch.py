"""Launches a training job in a process here or on other machines, shows its progress, and resumes it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from slipway.components import progress
from slipway.components.errors import ComponentError
from slipway.components.event_lines import read_event
from slipway.components.import_path import import_path
from slipway.components.kept_state import PREEMPTED_EXIT_CODE
from slipway.components.project import PROJECT_ROOT
from slipway.components.python_process import ending, start_module
from slipway.components.trainer.custom_fit import has_custom_fit, require_cpu
from slipway.components.trainer.interpreter import find_interpreter
from slipway.components.trainer.job import JOB_FILE, CustomJobRequest, TrainingJob
from slipway.components.trainer.remote.vertex import POLL_S, VertexTraining
from slipway.components.trainer.result import Result, TrainingPreemptedError, result_in
from slipway.components.trainer.settings.compute import ComputeSettings
from slipway.components.trainer.user_model import source_root

END_LIMIT_S = 10.0
"""Seconds that a training process may take to end after SIGTERM before it is killed."""
RESTARTS_WITHOUT_PROGRESS = 3
"""The maximum number of restarts of a preempted training from the same step."""

Made = TypeVar("Made")


@dataclass(frozen=True)
class Elsewhere:
    """Other machines to train on.

    Attributes:
        folder: a folder on gs:// for the job file and the results.
        poll_s: seconds between two polls of the job's state, > 0.
    """

    request: CustomJobRequest
    folder: str
    poll_s: float = POLL_S


def launch(
    job: TrainingJob,
    *,
    interpreter: str | None,
    meanwhile: Callable[[], Made],
    elsewhere: Elsewhere | None = None,
) -> tuple[Made, Result]:
    """Train, and resume each time that the training process is preempted.

    Args:
        job: its `output_dir` receives the job file, and then the results.
        interpreter: path of the Python that trains; None: this one.
        meanwhile: called while the process starts.
        elsewhere: other machines to train on; None: this one.

    Returns:
        The result of `meanwhile`, and the training's result.

    Raises:
        ComponentError: the training failed.
        SystemExit: this process received SIGTERM; the training has saved what it could.
    """
    if has_custom_fit(job.model):
        require_cpu(job.model, device=job.compute.device, backend=job.compute.backend)
    job_file = Path(job.output_dir, JOB_FILE)
    job_file.write_text(job.to_json(), encoding="utf-8")
    made, step, trials = None, -1, 0
    while True:
        with _leaves_on_sigterm(), _started(job, job_file, interpreter, elsewhere) as process:
            made = made or meanwhile()
            try:
                return made, process.wait(show=_show)
            except TrainingPreemptedError as error:
                trials = 0 if error.step > step else trials + 1
                step = error.step
                if trials >= RESTARTS_WITHOUT_PROGRESS:
                    raise
                progress.report(f"told to stop after step {step}, starts again")


@contextmanager
def _leaves_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into a regular exit, which ends the training process and gives it time to save."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return

    def leave(*_: object) -> None:
        sys.exit(PREEMPTED_EXIT_CODE)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _show(line: str) -> None:
    """Write a line of progress to the node's output, and report it for the screen."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    event = read_event(line) or {"event": None}
    match event["event"]:
        case None if line.startswith("training job"):
            progress.report(line)
        case "resumed":
            progress.report(f"continues after step {event['step']}")
        case "devices":
            progress.report(event["words"])
        case "fit":
            progress.report(event["message"])
        case "step":
            progress.report(f"loss {event['loss']:.4f}", done=event["step"], total=event["steps"])


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


def _started(
    job: TrainingJob, job_file: Path, interpreter: str | None, elsewhere: Elsewhere | None
) -> TrainingProcess | VertexTraining:
    if elsewhere is not None:
        return VertexTraining(job, **vars(elsewhere))
    return TrainingProcess(
        job_file,
        import_roots=[source_root(job.model)],
        compute=job.compute,
        interpreter=interpreter,
    )


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
