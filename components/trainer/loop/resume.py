"""Resumes a training from its newest intact checkpoint."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from slipway.components.event_lines import emit
from slipway.components.trainer.checkpoint_files import Checkpoint, CheckpointFolder
from slipway.components.trainer.checkpoint_storage import storage
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.loop.host_agreement import require_same_step
from slipway.components.trainer.loop.model_state import restore


def checkpoint_folder(job: TrainingJob) -> CheckpointFolder | None:
    """Return where the training keeps checkpoints.

    Without `checkpoint_dir`, a training that may go back to one has a folder for this attempt only, in its
    output; any other has none.
    """
    location = job.checkpoint_dir
    if location is None and (job.blow_up.trials or job.serves_best):
        own = Path(job.output_dir, "checkpoints")
        own.mkdir(exist_ok=True)
        location = str(own)
    if location is None:
        return None
    return CheckpointFolder(storage(location), job=job.identity, keep=job.checkpoint.keep)


def restore_newest(model: Any, folder: CheckpointFolder, devices: Devices) -> Checkpoint:
    """Restore the newest intact checkpoint into the model, and report damaged ones.

    Returns:
        The checkpoint without its variables; the beginning, at step 0, if there is none.

    Raises:
        ComponentError: the checkpoint does not fit the model, or the hosts do not see the same one.
    """
    checkpoint, problems = folder.newest()
    for problem in problems:
        emit("damaged", message=problem)
    require_same_step(checkpoint.step, devices)
    if checkpoint.variables:
        restore(model, checkpoint.variables)
    return replace(checkpoint, variables=())
