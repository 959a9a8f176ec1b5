"""Resumes a training from its newest intact checkpoint."""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import keras

from slipway.components.errors import ComponentError
from slipway.components.event_lines import emit
from slipway.components.trainer.checkpoint_files import Checkpoint, CheckpointFolder
from slipway.components.trainer.checkpoint_storage import storage
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.loop.blow_up import BlownUpError
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


def require_same_epochs(
    begin: Checkpoint, *, steps_per_epoch: int, steps_per_execution: int, order: str = ""
) -> None:
    """Refuse to go on with epochs of other steps or rows, which would repeat rows or leave some out.

    The steps of a call, and with them those of an epoch, depend on the devices and `train.checkpoint.steps`;
    the order of the rows on the hosts if they are streamed and, with `train.input.cache: auto`, on the free
    memory. An update of this code may change it, too.

    Args:
        begin: the checkpoint to go on from.
        order: names the order of the rows within an epoch; "": unknown.

    Raises:
        ComponentError: an epoch had another number of steps, or whole calls do not fill the rest of this one;
            or its rest would be of rows in another order.
    """
    differs = begin.step > 0 and begin.steps_per_epoch not in (0, steps_per_epoch)
    if differs or begin.step % steps_per_epoch % steps_per_execution:
        before = f" of {begin.steps_per_epoch} steps" * differs
        raise ComponentError(
            f"the checkpoint after step {begin.step} comes from other epochs{before}: now one has "
            f"{steps_per_epoch} steps, {steps_per_execution} in one call",
            hint="set train.checkpoint.steps to what it was, and train on the same devices; or remove the "
            "checkpoints to train from the beginning",
        )

    if begin.step % steps_per_epoch and begin.order and order and begin.order != order:
        raise ComponentError(
            f"the checkpoint after step {begin.step} is within an epoch of rows in another order: "
            f"{begin.order}, and now {order}, which would repeat some rows and leave others out",
            hint="train.input.cache: auto goes by the free memory: make room and resume, or set it to file, "
            "which trains from the beginning; on other hosts or after an update, remove the checkpoints",
        )


def keras_versions() -> dict[str, str]:
    """Return the versions of Keras and of its backend, by package."""
    backend = keras.backend.backend()
    return {"keras": keras.__version__, backend: str(import_module(backend).__version__)}


def require_same_keras(checkpoint: Checkpoint, versions: Mapping[str, str]) -> None:
    """Refuse a checkpoint of another version of Keras, and tell of another version of the backend.

    A checkpoint holds the variables in Keras' order: where another version orders them in another way, or
    gives an optimizer's state another meaning, their shapes may fit nevertheless.

    Args:
        versions: as `keras_versions` returns them.

    Raises:
        ComponentError: the versions of Keras differ.
    """
    for package, now in versions.items():
        before = checkpoint.versions.get(package, now)
        if before == now:
            continue
        if package == "keras":
            raise ComponentError(
                f"the checkpoint after step {checkpoint.step} was written with Keras {before}, and this is "
                f"Keras {now}, which may order or use the saved variables in another way",
                hint=f"go on with Keras {before}, or remove the checkpoints to train from the beginning",
            )
        emit("note", message=f"goes on from a checkpoint of {package} {before} with {package} {now}")


def restore_best(model: Any, folder: CheckpointFolder, step: int) -> None:
    """Restore the best epoch's checkpoint into the model.

    Args:
        step: complete steps at its end.

    Raises:
        ComponentError: it is damaged or gone, or does not fit the model.
    """
    try:
        best = folder.read(step)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ComponentError(
            f"the best epoch's checkpoint, after step {step}, cannot be used: {error}",
            hint="remove the checkpoints to train from the beginning; or export the last epoch: set "
            "train.checkpoint.serve_best to false, and train.early_stopping.patience to null",
        ) from error
    restore(model, best.variables)


def go_back(model: Any, folder: CheckpointFolder, devices: Devices, blown_up: BlownUpError) -> Checkpoint:
    """Restore the newest checkpoint in which the model has not blown up yet, and report the others.

    Args:
        blown_up: why.

    Returns:
        The checkpoint without its variables.

    Raises:
        ComponentError: there is none, or the hosts do not see the same one.
    """
    checkpoint, problems = folder.newest(without_nan=True)
    for problem in problems:
        emit("damaged", message=problem)
    require_same_step(checkpoint.step, devices)
    if not checkpoint.variables:
        raise ComponentError(
            f"{blown_up.message}, and there is no checkpoint to go back to: "
            + ("; ".join(problems) or "their files are gone"),
            hint="remove the checkpoints to train from the beginning, with a lower learning rate",
        )
    restore(model, checkpoint.variables)
    return replace(checkpoint, variables=())


def restore_newest(model: Any, folder: CheckpointFolder, devices: Devices) -> Checkpoint:
    """Restore the newest intact checkpoint into the model, and report damaged ones.

    Returns:
        The checkpoint without its variables; the beginning, at step 0, if there is none.

    Raises:
        ComponentError: the checkpoint does not fit the model, or is of another version of Keras; or the
            hosts do not see the same one.
    """
    checkpoint, problems = folder.newest()
    for problem in problems:
        emit("damaged", message=problem)
    require_same_step(checkpoint.step, devices)
    if checkpoint.variables:
        require_same_keras(checkpoint, keras_versions())
        restore(model, checkpoint.variables)
    return replace(checkpoint, variables=())
