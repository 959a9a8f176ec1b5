"""Fits a compiled model to the batches, from where an earlier attempt stopped, to the end.

Goes back to the last checkpoint if the loss blows up.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from slipway.components.event_lines import emit
from slipway.components.trainer.checkpoint_files import Attempts, Checkpoint, CheckpointWriter
from slipway.components.trainer.custom_functions import FIT, custom_function
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.loop.blow_up import BlownUpError
from slipway.components.trainer.loop.callback import FitStart, PeriodicSchedule, StepCallback, numbers_of
from slipway.components.trainer.loop.checkpoint_callback import Checkpointing
from slipway.components.trainer.loop.context import TrainingContext, facts_of
from slipway.components.trainer.loop.custom_callbacks import (
    custom_callbacks,
    require_settable_rate,
    sees_steps,
    words_of_forgotten,
)
from slipway.components.trainer.loop.custom_loop import OwnLoop
from slipway.components.trainer.loop.early_stopping import require_best
from slipway.components.trainer.loop.host_agreement import require_same_step
from slipway.components.trainer.loop.model_state import (
    averages_weights,
    build_metrics,
    build_optimizer,
    restore,
    snapshot,
)
from slipway.components.trainer.loop.preemption import Preemption
from slipway.components.trainer.loop.resume import (
    checkpoint_folder,
    go_back,
    keras_versions,
    require_same_epochs,
    restore_best,
    restore_newest,
)
from slipway.components.trainer.loop.step_time import InputWait, StepTimer
from slipway.components.trainer.loop.tensorboard import tensorboard
from slipway.components.trainer.loop.train_function import train_in_blocks

STEP_EVENT_INTERVAL_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Input:
    """The batches that a model is fitted to and measured on.

    Attributes:
        steps_per_epoch: full batches in one pass over the examples.
        in_blocks: whether the batches come in blocks, as `train_function.train_in_blocks` takes them.
        wait: measures how long blocks are waited for; None: not measured.
        batches_from: called with the number of complete steps and the number of rollbacks; returns the
            batches that follow, in another order for each number of rollbacks. In blocks, they are for calls
            of the model's `steps_per_execution`.
        eval_batches: for the metrics after each epoch; None: no such metrics.
        is_custom_loop: whether a function of the user takes the steps, see `custom_loop`.
        order: names the order of the rows within an epoch; a training goes on within one only in the same.
            "": unknown.
    """

    steps_per_epoch: int
    in_blocks: bool
    wait: InputWait | None
    batches_from: Callable[[int, int], Any]
    eval_batches: Any | None
    is_custom_loop: bool = False
    order: str = ""


def fit(
    model: Any,
    job: TrainingJob,
    data: Input,
    preemption: Preemption,
    *,
    began_at: float,
    devices: Devices,
) -> tuple[Checkpoint, Attempts]:
    """Train the model in place.

    Args:
        model: compiled, in the scope of its devices.
        job: gives epochs, checkpoints and the reaction to a blow-up.
        began_at: start of this attempt, in seconds since 1970.
        devices: the devices to train on; the first host writes checkpoints, and all resume from them.

    Returns:
        The state at the end with its history, but without the variables, which are in the model; and the
        attempts made.

    Raises:
        PreemptedError: the process received SIGTERM, and has saved what it could.
        BlownUpError: the loss is no longer a number, or above its limit, after all trials.
        ComponentError: a checkpoint cannot be written, does not fit the model or its epochs, or differs
            between hosts.
    """
    folder = checkpoint_folder(job)
    is_chief = devices.hosts.index == 0
    attempts = folder.begin_attempt(began_at) if folder and is_chief else Attempts(began_at=began_at, count=1)
    begin = restore_newest(model, folder, devices) if folder else Checkpoint()
    if begin.step:
        emit("resumed", epoch=len(begin.history), step=begin.step)
    elif folder and job.blow_up.trials:
        build_optimizer(model)
        folder.save(Checkpoint(versions=keras_versions(), variables=snapshot(model)))  # to go back to
    rollbacks = begin.rollbacks
    while True:
        try:
            writer = CheckpointWriter(folder) if folder and is_chief else None
            facts = facts_of(job, devices, steps_per_epoch=data.steps_per_epoch, first_step=begin.step)
            reached = _fit_from(begin, model, job, data, preemption, writer, facts)
        except BlownUpError as error:
            if folder is None or rollbacks >= job.blow_up.trials:
                raise
            rollbacks += 1
            begin = replace(go_back(model, folder, devices, error), rollbacks=rollbacks)
            emit("rolled_back", step=begin.step, trial=rollbacks, message=error.message)
            continue
        if folder and job.serves_best:
            require_best(reached.best, job.checkpoint, patience=job.early_stopping.patience)
        if folder and job.serves_best and reached.best:
            require_same_step(reached.best.step, devices)  # waits until the first host has written it
            restore_best(model, folder, reached.best.step)
            if averages_weights(model):  # as Keras' fit does at its end, and a custom loop
                model.optimizer.finalize_variable_values(model.trainable_weights)
        return reached, attempts


def _fit_from(
    begin: Checkpoint,
    model: Any,
    job: TrainingJob,
    data: Input,
    preemption: Preemption,
    writer: CheckpointWriter | None,
    facts: dict[str, Any],
) -> Checkpoint:
    """Fit from `begin` to the end, and wait for the last checkpoint to be written."""
    steps = data.steps_per_epoch
    own = custom_callbacks(job.model, TrainingContext(**facts))
    require_settable_rate(own, model)
    if begin.step and (forgotten := words_of_forgotten(own)):
        emit("note", message=forgotten)
    is_open = job.step.steps_per_execution is None and model.train_function is None
    if is_open and any(sees_steps(each) for each in own):
        model.steps_per_execution = 1  # Keras calls them once a call
    require_same_epochs(
        begin, steps_per_epoch=steps, steps_per_execution=model.steps_per_execution, order=data.order
    )
    start = FitStart(
        steps_per_epoch=steps, first_step=begin.step, order=data.order, versions=keras_versions()
    )
    timer = StepTimer(begin.clock, start, data.wait)
    saving = Checkpointing(
        begin,
        job,
        start,
        timer=timer,
        preemption=preemption,
        writer=writer,
        is_custom_loop=data.is_custom_loop,
    )
    callbacks = [
        timer,
        *own,  # before `saving`, so that their changes are saved
        saving,
        Progress(start, epochs=job.epochs),
        *tensorboard(job, start),
    ]

    def run(epoch: int, until: int, *, done: int) -> None:
        batches = data.batches_from(epoch * steps + done, begin.rollbacks)
        if data.in_blocks:
            train_in_blocks(model, batches, data.wait)
        elif begin.metrics and done:
            build_metrics(model, next(iter(batches)))
        model.fit(
            batches,
            initial_epoch=epoch,
            epochs=until,
            steps_per_epoch=steps - done,
            validation_data=data.eval_batches,
            shuffle=False,  # the batches come shuffled
            verbose=0,
            callbacks=callbacks,
        )

    def run_custom_loop() -> None:
        is_over = saving.is_over and not begin.step % steps  # else the epoch is ended first
        is_complete = is_over or begin.step >= steps * job.epochs
        OwnLoop(
            model=model,
            batches=() if is_complete else data.batches_from(begin.step, begin.rollbacks),
            eval_batches=data.eval_batches,
            epochs=job.epochs,
            steps_per_epoch=steps,
            first_step=begin.step,
            callbacks=callbacks,
            where=f"{job.model.rpartition('.')[0]}.{FIT}",
        ).run(None if is_complete else custom_function(job.model, FIT), facts)

    preemption.training_begins()
    try:
        if data.is_custom_loop:
            run_custom_loop()
            return saving.reached
        epoch, done = divmod(begin.step, steps)
        if done:  # the rest of an epoch that was interrupted
            run(epoch, epoch + 1, done=done)
            epoch = job.epochs if model.stop_training else epoch + 1
            if epoch < job.epochs and averages_weights(model):
                restore(model, saving.state)  # fit has ended, and replaced the weights by their averages
        run(job.epochs if saving.is_over else epoch, job.epochs, done=0)
    finally:
        preemption.training_ended()
        if writer:
            writer.finish()
    return saving.reached


class Progress(StepCallback):
    """Emits a `step` event at most twice a second, and an `epoch` event after each epoch."""

    def __init__(self, start: FitStart, *, epochs: int) -> None:
        super().__init__(start)
        self._epochs = epochs
        self._step_events = PeriodicSchedule(seconds=STEP_EVENT_INTERVAL_S)

    def after_step(self, loss: Any) -> None:
        """Report the loss of the previous call."""
        if self.previous is not None and self._step_events.is_due(self.step):
            self._step_events.done(self.step)
            step, loss = self.previous
            total = self._epochs * self.start.steps_per_epoch
            emit("step", step=step, steps=total, loss=round(float(loss), 6))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Report the epoch's metrics."""
        metrics = numbers_of(logs)
        emit("epoch", epoch=epoch + 1, epochs=self._epochs, metrics=metrics)
