"""Launches a training job here or on other machines, shows its progress, and resumes it if preempted."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from slipway.components import kept_state, progress
from slipway.components.event_lines import read_event
from slipway.components.trainer.custom_fit import has_custom_fit, require_cpu
from slipway.components.trainer.job import JOB_FILE, TrainingJob
from slipway.components.trainer.local_process import TrainingPreemptedError, TrainingProcess
from slipway.components.trainer.remote.custom_job import CustomJobRequest
from slipway.components.trainer.remote.vertex import POLL_S, VertexTraining
from slipway.components.trainer.result import Result
from slipway.components.trainer.user_model import source_root

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


@contextmanager
def _leaves_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into a regular exit, which ends the training process and gives it time to save."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return

    def leave(*_: object) -> None:
        sys.exit(kept_state.PREEMPTED_EXIT_CODE)

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
