"""The end of a training: its metrics, its speed, its use of the machine, and the verdict; or a preemption."""

import os
import time
from collections.abc import Mapping
from typing import NotRequired, TypedDict, cast

from slipway.components.errors import ComponentError
from slipway.components.trainer.checkpoint_files import Attempts, Checkpoint
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.resource_usage import usage
from slipway.components.trainer.same_answers import Answers
from slipway.components.trainer.speed_summary import Measured, verdict


class Facts(TypedDict):
    """Facts known at the start of a training: device and input in words, rows, steps, parameters."""

    devices: str
    input: str
    train_rows: int
    eval_rows: int
    steps: int
    epochs: int
    parameters: int


class Speed(TypedDict):
    """Milliseconds per step, and what follows from them; None: not measured."""

    step_ms: float | None
    constant_batch_step_ms: float | None
    examples_per_s: float | None
    input_waiting_share: float | None


class Time(TypedDict):
    """The use of time over all attempts; `goodput` is 0 .. 1."""

    useful_s: float
    wall_s: float
    goodput: float
    restarts: int
    rollbacks: int


class Machine(TypedDict):
    """The training's use of its machine; see `resource_usage.Usage`."""

    cores: int
    cpu_s: float
    memory_peak_bytes: int
    device_memory_peak_bytes: int | None
    read_bytes: int
    written_bytes: int


class Summary(TypedDict):
    """The part of result.json that is known only after the training; see `summarise`."""

    fit_s: float
    examples_per_s: int | None
    epoch: int
    metrics: dict[str, float]
    speed: Speed
    time: Time
    machine: Machine
    verdict: str


class Result(Facts, Summary):
    """The content of result.json, as the training process writes it.

    Attributes:
        answers: of the trained model, see `same_answers.sample_answers`; only for the export.
    """

    answers: NotRequired[Answers]


class TrainingPreemptedError(ComponentError):
    """The training process was preempted. It has saved what it could, and can be restarted.

    Args:
        step: complete and saved steps.
    """

    def __init__(self, step: int) -> None:
        super().__init__(f"the training process was told to stop (SIGTERM), and ended after step {step}")
        self.step = step


def result_in(event: Mapping[str, object]) -> Result:
    """Return the result from the "done" event of a training process, which wrote it as a `Result`."""
    return cast(Result, {name: value for name, value in event.items() if name != "event"})


def summarise(
    job: TrainingJob,
    reached: Checkpoint,
    attempts: Attempts,
    *,
    is_wait_counted: bool,
    constant_batch_step_s: float | None,
    input_advice: str,
) -> Summary:
    """Return the part of result.json that is known only after the training.

    Args:
        reached: the state at the end.
        is_wait_counted: whether the clock's `waiting_s` was measured.
        constant_batch_step_s: seconds per step on one constant batch; None: not measured.
        input_advice: what would speed up input; may be empty.

    Returns:
        fit_s and examples_per_s, over all of `fit`; metrics of the epoch whose weights are exported, by Keras
        name; epoch, its number; speed, time and machine, whose keys name their units; and verdict, a line for
        people.
    """
    clock = reached.clock
    serves_best = job.serves_best and reached.best is not None
    epoch = reached.best.epoch if serves_best and reached.best else len(reached.history)
    step_s = clock.stepping_s / clock.timed_steps if clock.timed_steps else None
    measured = Measured(
        step_s=step_s,
        step_waiting_s=clock.waiting_s / clock.timed_steps if is_wait_counted and clock.timed_steps else None,
        constant_batch_step_s=constant_batch_step_s,
        batch_size=job.batch_size,
        useful_s=(step_s or 0.0) * reached.step,
        wall_s=time.time() - attempts.began_at,
        attempts=attempts.count,
        rollbacks=reached.rollbacks,
        input_advice=input_advice,
    )
    return {
        "fit_s": round(clock.fit_s, 3),
        "examples_per_s": round(reached.step * job.batch_size / clock.fit_s) if clock.fit_s else 0,
        "epoch": epoch,
        "metrics": {name: value for name, value in reached.history[epoch - 1].items() if name != "epoch"},
        "speed": _speed(measured),
        "time": _time(measured),
        "machine": _machine(),
        "verdict": verdict(measured),
    }


def summarise_fit(*, metrics: dict[str, float], fit_s: float, wall_s: float, words: str) -> Summary:
    """Return the same part of result.json for a model that was fitted at once.

    Args:
        metrics: of the model, by Keras name.
        fit_s: seconds of the fit alone.
        wall_s: seconds of the whole training.
        words: the last progress message of the fit; may be empty.
    """
    measured = Measured(step_s=None, batch_size=1, useful_s=fit_s, wall_s=wall_s)
    told = f": {words}" if words else ""
    return {
        "fit_s": round(fit_s, 3),
        "examples_per_s": None,
        "epoch": 1,
        "metrics": metrics,
        "speed": _speed(measured),
        "time": _time(measured),
        "machine": _machine(),
        "verdict": f"fitted at once in {fit_s:.1f} s{told}",
    }


def _speed(measured: Measured) -> Speed:
    step_s, constant_s, share = measured.step_s, measured.constant_batch_step_s, measured.waiting_share
    return {
        "step_ms": None if step_s is None else round(1e3 * step_s, 4),
        "constant_batch_step_ms": None if constant_s is None else round(1e3 * constant_s, 4),
        "examples_per_s": None if not step_s else round(measured.batch_size / step_s),
        "input_waiting_share": None if share is None else round(share, 3),
    }


def _time(measured: Measured) -> Time:
    return {
        "useful_s": round(measured.useful_s, 3),
        "wall_s": round(measured.wall_s, 3),
        "goodput": round(measured.goodput, 4),
        "restarts": measured.attempts - 1,
        "rollbacks": measured.rollbacks,
    }


def _machine() -> Machine:
    used = usage()
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu_s": round(used.cpu_s, 2),
        "memory_peak_bytes": used.memory_peak_bytes,
        "device_memory_peak_bytes": used.device_memory_peak_bytes,
        "read_bytes": used.read_bytes,
        "written_bytes": used.written_bytes,
    }
