"""Fits a compiled model to the batches, from where an earlier attempt got to, to the end."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from components.trainer.checkpoint import Checkpoint, CheckpointFolder
from components.trainer.job import TrainingJob
from components.trainer.loop.progress import Progress
from components.trainer.loop.record import Record, go_on


def fit(
    model: Any,
    job: TrainingJob,
    *,
    steps_per_epoch: int,
    batches_from: Callable[[int], Any],
    eval_batches: Any | None,
) -> Checkpoint:
    """Trains the model in place.

    Args:
        model: compiled, in the scope of its devices.
        job: gives epochs and the checkpoint folder.
        steps_per_epoch: full batches in one pass over the examples.
        batches_from: called with the number of steps that are complete; gives the batches that follow.
        eval_batches: for the metrics after each epoch; None: no such metrics.

    Returns:
        How far the training is and its history; without the variables, those are in the model.

    Raises:
        ComponentError: the loss is no longer a number, or a checkpoint cannot be written.
    """
    folder = CheckpointFolder(Path(job.checkpoint_dir), job=job.identity) if job.checkpoint_dir else None
    begin = go_on(model, folder) if folder else Checkpoint()
    record = Record(begin, folder, steps_per_epoch=steps_per_epoch)
    model.fit(
        batches_from(begin.step),
        epochs=job.epochs,
        initial_epoch=begin.epoch,
        steps_per_epoch=steps_per_epoch,
        validation_data=eval_batches,
        shuffle=False,  # the batches come shuffled
        verbose=0,
        # In this order: no checkpoint of a training that has blown up.
        callbacks=[Progress(epochs=job.epochs, steps_per_epoch=steps_per_epoch), record],
    )
    return record.reached
