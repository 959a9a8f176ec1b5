"""Checkpoints on disk: whole or not there, told from damaged ones, and only of one training job.

A checkpoint is two files. `epoch-00003.npz` holds every variable of the model, of its optimizer and of its
seed generators: 2 ms for 24,000 parameters, where Keras' own weights file takes 35 and leaves the seeds out.
`epoch-00003.json` is written last: what was trained so far, and the digest of the first.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from components.errors import ComponentError

KEPT_CHECKPOINTS = 2
"""The newest one, and the one before in case that is damaged."""
_NAME = re.compile(r"epoch-(\d+)\.(?:json|npz)")
_UNFINISHED = "unfinished."


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A training at the end of an epoch; without arguments, at its beginning.

    Attributes:
        epoch: epochs that are complete, >= 0.
        step: steps that are complete, >= 0.
        fit_s: seconds that these took, in all attempts.
        history: `{"epoch": number, metric: value, ...}` of each.
        variables: values of the variables, in the model's order.
    """

    epoch: int = 0
    step: int = 0
    fit_s: float = 0.0
    history: tuple[dict[str, float], ...] = ()
    variables: Sequence[npt.NDArray[Any]] = ()


class CheckpointFolder:
    """The checkpoints of one training job.

    Args:
        path: an existing folder that nothing else is kept in.
        job: `TrainingJob.identity`; checkpoints of another job are not gone on with.
    """

    def __init__(self, path: Path, *, job: str) -> None:
        self.path = path
        self._job = job

    def save(self, checkpoint: Checkpoint) -> None:
        """Writes a checkpoint; when this returns it also survives a loss of power. Removes outdated ones.

        Raises:
            ComponentError: it could not be written; the one before is still there.
        """
        name = f"epoch-{checkpoint.epoch:05d}"
        try:
            arrays = self._written(f"{name}.npz", lambda file: np.savez(file, *checkpoint.variables))
            facts = {
                "job": self._job,
                "epoch": checkpoint.epoch,
                "step": checkpoint.step,
                "fit_s": checkpoint.fit_s,
                "history": list(checkpoint.history),
                "variables": {"file": arrays.name, "sha256": _file_digest(arrays)},
            }
            text = json.dumps({"sha256": _digest(facts), "checkpoint": facts}, indent=1).encode()
            self._written(f"{name}.json", lambda file: file.write(text))
            self._sync()
            self._remove_outdated(checkpoint.epoch)
        except OSError as error:
            raise ComponentError(
                f"the checkpoint {self.path / name} could not be written: {error.strerror or error}",
                hint="make room on the disk; the training goes on from the checkpoint before",
            ) from error

    def newest(self) -> tuple[Checkpoint, list[str]]:
        """The newest checkpoint that is intact, and what is wrong with newer ones, in words.

        Without any it is the beginning of the training.
        """
        problems: list[str] = []
        for epoch in sorted(self._epochs(), reverse=True):
            file = self.path / f"epoch-{epoch:05d}.json"
            try:
                return self._read(file), problems
            except FileNotFoundError:
                continue  # killed between the two files: this one was never finished
            except (OSError, ValueError, KeyError, TypeError) as error:
                problems.append(f"{file.name} cannot be used: {error}")
        return Checkpoint(), problems

    def _read(self, file: Path) -> Checkpoint:
        document = json.loads(file.read_bytes())
        facts = document["checkpoint"]
        if document["sha256"] != _digest(facts):
            raise ValueError("it is damaged")
        if facts["job"] != self._job:
            raise ValueError("it belongs to another training job")
        arrays = self.path / f"{file.stem}.npz"
        if not arrays.exists() or facts["variables"]["sha256"] != _file_digest(arrays):
            raise ValueError(f"{arrays.name} is {'damaged' if arrays.exists() else 'missing'}")
        with np.load(arrays, allow_pickle=False) as stored:
            variables = [stored[f"arr_{number}"] for number in range(len(stored.files))]
        return Checkpoint(
            epoch=facts["epoch"],
            step=facts["step"],
            fit_s=facts["fit_s"],
            history=tuple(facts["history"]),
            variables=variables,
        )

    def _written(self, name: str, write: Callable[[BinaryIO], object]) -> Path:
        """Writes a file under another name, and renames it when it is on the disk."""
        unfinished, finished = self.path / f"{_UNFINISHED}{name}", self.path / name
        with unfinished.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(finished)
        return finished

    def _sync(self) -> None:
        """Brings the folder's new names to the disk, before old files go."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _epochs(self) -> set[int]:
        return {int(match[1]) for file in self.path.iterdir() if (match := _NAME.fullmatch(file.name))}

    def _remove_outdated(self, newest: int) -> None:
        # Higher numbers are damaged, or another job's: training would not have begun before them otherwise.
        kept = sorted(epoch for epoch in self._epochs() if epoch <= newest)[-KEPT_CHECKPOINTS:]
        for file in self.path.iterdir():
            match = _NAME.fullmatch(file.name)
            if (match and int(match[1]) not in kept) or file.name.startswith(_UNFINISHED):
                file.unlink()


def _digest(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _file_digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
