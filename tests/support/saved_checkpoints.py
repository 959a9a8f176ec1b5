"""Checkpoints as a training saves them, each told apart by its epoch, and what lies in their folder."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from small_job import small_job

from slipway.components.trainer.checkpoint_files import Checkpoint, CheckpointFolder, Clock
from slipway.components.trainer.checkpoint_storage import Storage, checkpoint_dir
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.loop.early_stopping import Best
from slipway.components.trainer.settings.checkpoint import CheckpointSettings


def checkpoint(epoch: int, best: Best | None = None) -> Checkpoint:
    """What is saved at the end of an epoch of five steps."""
    variables = [np.full((3, 2), epoch, np.float32), np.array([7, epoch], np.uint32), np.int64(5 * epoch)]
    return Checkpoint(
        step=5 * epoch,
        history=tuple({"epoch": n + 1, "loss": 0.5**n} for n in range(epoch)),
        clock=Clock(fit_s=0.5 * epoch, stepping_s=0.25 * epoch, timed_steps=5 * epoch - 1),
        best=best,
        rollbacks=epoch % 2,
        is_stopped=epoch % 2 == 1,
        steps_per_epoch=5,
        variables=variables,
        metrics=[np.array([0.25 * epoch])],
    )


def same(found: Checkpoint, expected: Checkpoint) -> bool:
    """Whether two checkpoints are equal, down to the types of their arrays."""
    arrays = zip([*found.variables, *found.metrics], [*expected.variables, *expected.metrics], strict=True)
    return replace(found, variables=(), metrics=()) == replace(expected, variables=(), metrics=()) and all(
        np.array_equal(a, b) and a.dtype == b.dtype for a, b in arrays
    )


def filled(files: Storage) -> CheckpointFolder:
    """A folder of job 1 that has saved three epochs, and keeps the files of the last two."""
    made = CheckpointFolder(files, job="job 1")
    for epoch in (1, 2, 3):
        made.save(checkpoint(epoch))
    return made


def step_files(*steps: int) -> list[str]:
    """The names of the files of checkpoints at some steps."""
    return [f"step-{step:09d}.{kind}" for step in steps for kind in ("json", "npz")]


def change(files: Storage, name: str, how: Callable[[bytes], bytes]) -> None:
    """Rewrites a file with changed bytes."""
    content = how(files.read(name))
    files.write(name, lambda file: file.write(content))


def job_that_keeps(folder: str | None, model: str = "keras.build_model") -> TrainingJob:
    """A job whose checkpoints are kept in a folder."""
    job = small_job(
        train_files=("train",),
        model=model,
        batch_size=1,
        output_dir="output",
        checkpoint=CheckpointSettings(folder=folder),
    )
    return replace(job, checkpoint_dir=checkpoint_dir(job))
