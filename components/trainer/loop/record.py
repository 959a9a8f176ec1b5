"""A Keras callback that notes how far the training is and keeps that in a folder; and the way back."""

import time
from dataclasses import replace
from typing import Any

import keras

from components.errors import ComponentError
from components.trainer.checkpoint import Checkpoint, CheckpointFolder
from components.trainer.events import emit


class Record(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps in `reached` how far the training is, and in the folder, where there is one, all of its state.

    Args:
        begin: where this process began.
        folder: for checkpoints; None: none.
        steps_per_epoch: steps in each epoch.
    """

    def __init__(self, begin: Checkpoint, folder: CheckpointFolder | None, *, steps_per_epoch: int) -> None:
        super().__init__()
        self.reached = replace(begin, variables=())
        self._begin = begin
        self._folder = folder
        self._steps_per_epoch = steps_per_epoch
        self._began_at = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Notes the epoch's metrics, and saves."""
        metrics = {name: float(value) for name, value in (logs or {}).items()}
        self.reached = Checkpoint(
            epoch=epoch + 1,
            step=(epoch + 1) * self._steps_per_epoch,
            fit_s=self._begin.fit_s + time.monotonic() - self._began_at,
            history=(*self.reached.history, {"epoch": epoch + 1, **metrics}),
        )
        if self._folder:
            values = [keras.ops.convert_to_numpy(variable) for variable in _variables(self.model)]
            self._folder.save(replace(self.reached, variables=values))


def go_on(model: Any, folder: CheckpointFolder) -> Checkpoint:
    """Brings the model to the newest intact checkpoint and says so; the beginning where there is none.

    Raises:
        ComponentError: the checkpoint is of another model.
    """
    checkpoint, problems = folder.newest()
    for problem in problems:
        emit("damaged", message=problem)
    if checkpoint.epoch == 0:
        return checkpoint
    model.optimizer.build(model.trainable_variables)
    variables = _variables(model)
    shapes = [tuple(variable.shape) for variable in variables]
    if shapes != [values.shape for values in checkpoint.variables]:
        raise ComponentError(
            f"the checkpoint in {folder.path} does not fit the model that build_model returns now",
            hint="remove that folder to train from the beginning",
        )
    for variable, values in zip(variables, checkpoint.variables, strict=True):
        # NumPy's files know no bfloat16, and give back plain bytes.
        dtype = keras.ops.convert_to_numpy(variable).dtype
        variable.assign(values.view(dtype) if values.dtype.kind == "V" else values)
    emit("resumed", epoch=checkpoint.epoch)
    return checkpoint


def _variables(model: Any) -> list[Any]:
    """All that training changes: weights, the seeds of Dropout and its like, the optimizer's state."""
    return [*model.variables, *model.optimizer.variables]
