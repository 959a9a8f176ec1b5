"""Checkpoints of a training job: written whole or not at all, checked for damage, and tied to their job.

A checkpoint is two files. `step-000000117.npz` holds every variable of the model, its optimizer, its seed
generators and, within an epoch, its metrics: this takes 2 ms for 24,000 parameters, while Keras' own weights
file takes 35 ms and leaves out the seeds. `step-000000117.json`, written last, holds the training's progress
and the digest of the first file.
"""

import hashlib
import io
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.trainer.checkpoint_storage import Storage
from slipway.components.trainer.loop.early_stopping import Best

KEPT_CHECKPOINTS = 2
"""The newest one, and the one before in case the newest is damaged."""
_NAME = re.compile(r"step-(\d+)\.(?:json|npz)")
_ATTEMPTS = "attempts.json"

Arrays = Sequence[npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The time that a training took by use, over all attempts, without repeated work.

    Attributes:
        fit_s: seconds of fitting, including evaluation and compilation.
        stepping_s: seconds of the timed steps, which exclude the first of each attempt, because it compiles.
        waiting_s: seconds of `stepping_s` spent waiting for input; 0 if not measured.
    """

    fit_s: float = 0.0
    stepping_s: float = 0.0
    timed_steps: int = 0
    waiting_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The state of a training after some step; without arguments, at its beginning.

    Attributes:
        step: complete steps, >= 0.
        history: `{"epoch": number, metric: value, ...}` of each complete epoch.
        best: the best epoch; None: none yet.
        rollbacks: how often the training has blown up and gone back.
        is_stopped: whether a callback of the user's has ended it: after this epoch, or with this one.
        steps_per_epoch: the steps of an epoch; 0: unknown, as in checkpoints of earlier releases.
        order: names the order of the rows within an epoch; "": unknown, as in such checkpoints.
        versions: of Keras and its backend, by package; {}: unknown, as in such checkpoints.
        variables: values of the variables, in the model's order.
        metrics: values of the metrics' variables; empty at the end of an epoch.
    """

    step: int = 0
    history: tuple[dict[str, float], ...] = ()
    clock: Clock = field(default_factory=Clock)
    best: Best | None = None
    rollbacks: int = 0
    is_stopped: bool = False
    steps_per_epoch: int = 0
    order: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    variables: Arrays = ()
    metrics: Arrays = ()


@dataclass(frozen=True, kw_only=True)
class Attempts:
    """The attempts at a training.

    Attributes:
        began_at: start of the first attempt, in seconds since 1970.
        count: number of attempts including this one, >= 1.
    """

    began_at: float
    count: int


class CheckpointFolder:
    """The checkpoints of one training job.

    Args:
        files: where the checkpoints are stored; nothing else is stored there.
        job: `TrainingJob.identity`; checkpoints of other jobs are not resumed from.
        keep: how many of the newest checkpoints to keep, >= 1; the best epoch's of each is kept as well.
    """

    def __init__(self, files: Storage, *, job: str, keep: int = KEPT_CHECKPOINTS) -> None:
        self._files = files
        self._job = job
        self._keep = keep
        self._best_of: dict[int, int | None] = {}  # by step

    def begin_attempt(self, now: float) -> Attempts:
        """Count another attempt at the training, and remove files that an earlier one left half written.

        Args:
            now: the time, in seconds since 1970.

        Raises:
            ComponentError: the count could not be written.
        """
        # Here, not on reading: the other hosts of a training read while this one writes.
        self._files.remove_unfinished()
        before = Attempts(began_at=now, count=0)
        if _ATTEMPTS in self._files.names():
            try:
                stored = json.loads(self._files.read(_ATTEMPTS))
                if stored["job"] == self._job:
                    before = Attempts(began_at=float(stored["began_at"]), count=int(stored["count"]))
            except (OSError, ValueError, KeyError, TypeError):
                pass  # damaged: only the count of earlier attempts is lost
        attempts = Attempts(began_at=before.began_at, count=before.count + 1)
        text = json.dumps({"job": self._job, **asdict(attempts)}).encode()
        try:
            self._files.write(_ATTEMPTS, lambda file: file.write(text))
        except OSError as error:
            raise _not_written(_ATTEMPTS, error) from error
        return attempts

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, which then survives a loss of power, and remove outdated ones.

        Raises:
            ComponentError: the checkpoint could not be written; the previous one is still there.
        """
        name = _name(checkpoint.step)
        arrays = {f"variable_{number}": values for number, values in enumerate(checkpoint.variables)}
        arrays |= {f"metric_{number}": values for number, values in enumerate(checkpoint.metrics)}
        digest = hashlib.sha256()
        facts: dict[str, object] = {
            "job": self._job,
            "step": checkpoint.step,
            "history": list(checkpoint.history),
            "clock": asdict(checkpoint.clock),
            "best": asdict(checkpoint.best) if checkpoint.best else None,
            "rollbacks": checkpoint.rollbacks,
            "is_stopped": checkpoint.is_stopped,
            "steps_per_epoch": checkpoint.steps_per_epoch,
            "order": checkpoint.order,
            "versions": dict(checkpoint.versions),
            "variables": len(checkpoint.variables),
            "metrics": len(checkpoint.metrics),
        }

        def write_arrays(file: BinaryIO) -> None:
            content = io.BytesIO()
            np.savez(content, **arrays)  # type: ignore[arg-type]
            digest.update(content.getbuffer())
            file.write(content.getbuffer())

        try:
            self._files.write(f"{name}.npz", write_arrays)
            facts["arrays_sha256"] = digest.hexdigest()
            text = json.dumps({"sha256": _digest(facts), "checkpoint": facts}, indent=1).encode()
            self._files.write(f"{name}.json", lambda file: file.write(text))
            self._best_of[checkpoint.step] = checkpoint.best.step if checkpoint.best else None
            self._remove_outdated(checkpoint)
        except OSError as error:
            raise _not_written(name, error) from error

    def newest(self, *, without_nan: bool = False) -> tuple[Checkpoint, list[str]]:
        """Return the newest intact checkpoint, and a description of the problem of each newer one.

        Without any intact checkpoint, it is the beginning of the training.

        Args:
            without_nan: pass over checkpoints of a model that has blown up. A loss is computed before the
                weights change, so it may still be a number when they are none any more.
        """
        problems: list[str] = []
        for step in sorted(self._steps(), reverse=True):
            try:
                checkpoint = self.read(step)
            except FileNotFoundError:
                continue  # killed between writing the two files: this one was never finished
            except (OSError, ValueError, KeyError, TypeError) as error:
                problems.append(f"{_name(step)}.json cannot be used: {error}")
                continue
            if not (without_nan and any(_has_nan(each) for each in checkpoint.variables)):
                return checkpoint, problems
            problems.append(f"{_name(step)}.json cannot be used: a weight is NaN")
        return Checkpoint(), problems

    def read(self, step: int) -> Checkpoint:
        """Return the checkpoint of a step.

        Raises:
            FileNotFoundError: there is none.
            OSError, ValueError, KeyError, TypeError: the checkpoint is damaged, or belongs to another job.
        """
        facts = self._facts(step)
        arrays = f"{_name(step)}.npz"
        try:
            content = self._files.read(arrays)
        except FileNotFoundError as error:
            raise ValueError(f"{arrays} is missing") from error
        if facts["arrays_sha256"] != hashlib.sha256(content).hexdigest():
            raise ValueError(f"{arrays} is damaged")
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            variables = [stored[f"variable_{number}"] for number in range(facts["variables"])]
            metrics = [stored[f"metric_{number}"] for number in range(facts["metrics"])]
        return Checkpoint(
            step=facts["step"],
            history=tuple(facts["history"]),
            clock=Clock(**facts["clock"]),
            best=Best(**facts["best"]) if facts["best"] else None,
            rollbacks=facts["rollbacks"],
            is_stopped=facts.get("is_stopped", False),
            steps_per_epoch=facts.get("steps_per_epoch", 0),
            order=facts.get("order", ""),
            versions=facts.get("versions", {}),
            variables=variables,
            metrics=metrics,
        )

    def _facts(self, step: int) -> Any:
        document = json.loads(self._files.read(f"{_name(step)}.json"))
        facts = document["checkpoint"]
        if document["sha256"] != _digest(facts):
            raise ValueError("it is damaged")
        if facts["job"] != self._job:
            raise ValueError("it belongs to another training job")
        return facts

    def _best_at(self, step: int) -> int | None:
        """Return the step of the best epoch until a checkpoint; None if there is none, or it is damaged."""
        if step not in self._best_of:
            try:
                best = self._facts(step)["best"]
                self._best_of[step] = Best(**best).step if best else None
            except (OSError, ValueError, KeyError, TypeError):
                self._best_of[step] = None
        return self._best_of[step]

    def _steps(self) -> set[int]:
        return {int(match[1]) for name in self._files.names() if (match := _NAME.fullmatch(name))}

    def _remove_outdated(self, newest: Checkpoint) -> None:
        # Higher steps are damaged or belong to another job: otherwise training would have resumed from them.
        kept = set(sorted(step for step in self._steps() if step <= newest.step)[-self._keep :])
        # Each keeps its best epoch: if the newest is damaged, the one before takes its place.
        kept |= {best for step in kept if (best := self._best_at(step)) is not None}
        for name in self._files.names():
            match = _NAME.fullmatch(name)
            if match and int(match[1]) not in kept:
                self._files.remove(name)


class CheckpointWriter:
    """Writes checkpoints in a thread, one at a time and in order: the device does not wait for the disk."""

    def __init__(self, folder: CheckpointFolder) -> None:
        self._folder = folder
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def write(self, checkpoint: Checkpoint) -> None:
        """Start to write, after waiting for the previous checkpoint, so that at most two are held in memory.

        Args:
            checkpoint: its arrays must not change any more.

        Raises:
            ComponentError: the previous checkpoint could not be written.
        """
        self.finish()
        # Not a daemon: the process must not end in the middle of a file.
        self._thread = threading.Thread(target=self._write, args=(checkpoint,), name="checkpoint")
        self._thread.start()

    def finish(self) -> None:
        """Wait until everything is written.

        Raises:
            ComponentError: a checkpoint could not be written.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _write(self, checkpoint: Checkpoint) -> None:
        try:
            self._folder.save(checkpoint)
        except BaseException as error:  # raised by `finish`, where the training can be stopped
            self._error = error


def _has_nan(values: npt.NDArray[Any]) -> bool:
    # No whole number is NaN, nor is it equal to itself only if it is one, also in bfloat16.
    return bool((values != values).any())


def _name(step: int) -> str:
    return f"step-{step:09d}"


def _not_written(name: str, error: OSError) -> ComponentError:
    return ComponentError(
        f"the checkpoint {name} could not be written: {error.strerror or error}",
        hint="free disk space for the checkpoints; the training continues with the previous one",
    )


def _digest(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
