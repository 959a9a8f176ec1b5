"""The callback that tracks the progress of a training, and saves checkpoints to resume from."""

import time
from dataclasses import replace
from typing import Any

import keras

from slipway.components.errors import ComponentError
from slipway.components.trainer.checkpoint_files import Arrays, Checkpoint, CheckpointWriter
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.loop.blow_up import require_loss, require_losses
from slipway.components.trainer.loop.callback import FitStart, PeriodicSchedule, StepCallback, numbers_of
from slipway.components.trainer.loop.early_stopping import best_so_far, stops_early
from slipway.components.trainer.loop.model_state import (
    averages_weights,
    metrics_snapshot,
    require_schedule,
    restore_metrics,
    snapshot,
)
from slipway.components.trainer.loop.preemption import PreemptedError, Preemption
from slipway.components.trainer.loop.step_time import StepTimer

LOSS_INTERVAL_S = 0.5
"""Seconds between two checks of the loss between checkpoints."""


class Checkpointing(StepCallback):
    """Tracks the progress of a training in `reached`, and saves its whole state to a folder if there is one.

    Attributes:
        reached: the progress, without the variables.
        state: the variables at the end of the last epoch, or as last saved.

    Args:
        begin: the state that this fit begins with.
        job: says when a checkpoint is due, when the training has blown up, and when it stops early.
        start: where in the training the fit begins.
        timer: of the steps, paused while saving.
        writer: None: no checkpoints are kept.
        is_custom_loop: whether a function of the user takes the steps.
    """

    def __init__(
        self,
        begin: Checkpoint,
        job: TrainingJob,
        start: FitStart,
        *,
        timer: StepTimer,
        preemption: Preemption,
        writer: CheckpointWriter | None,
        is_custom_loop: bool = False,
    ) -> None:
        super().__init__(start)
        self.reached = replace(
            begin,
            steps_per_epoch=start.steps_per_epoch,
            order=start.order,
            versions=start.versions,
            variables=(),
            metrics=(),
        )
        self.state: Arrays = ()
        self._begin = begin
        self._is_custom_loop = is_custom_loop
        self._known: set[int] = set()
        self._trained: set[int] = set()
        self._began_at = time.monotonic()
        self._job = job
        self._timer = timer
        self._preemption = preemption
        self._writer = writer
        minutes = job.checkpoint.minutes
        self._saving = PeriodicSchedule(
            steps=job.checkpoint.steps,
            seconds=None if minutes is None else 60 * minutes,
            first_step=begin.step,
        )
        self._looking = PeriodicSchedule(seconds=LOSS_INTERVAL_S)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Restore the metrics of an epoch that was interrupted."""
        super().on_epoch_begin(epoch)
        self._require_same_step()
        if self._begin.metrics and epoch * self.start.steps_per_epoch <= self._begin.step:
            restore_metrics(self.model, self._begin.metrics)

    def _require_same_step(self) -> None:
        """Reject what a callback has changed, and Keras' fit, whose step is compiled, would not see."""
        require_schedule(self.model)
        if self._is_custom_loop:
            return
        trained = {id(each) for each in self.model.trainable_variables}
        # A layer may make its weights in the first step; a step of the user's own may choose what it trains.
        has_own_step = type(self.model).train_step is not keras.Model.train_step
        is_other = trained & self._known != self._trained and not has_own_step
        self._known, self._trained = {id(each) for each in self.model.variables}, trained
        is_compiled = self.model.train_function is None
        if not is_compiled and not is_other:
            return
        done = "compiled the model" if is_compiled else "changed which weights are trained (trainable)"
        raise ComponentError(
            f"a callback {done} after epoch {len(self.reached.history)}, within Keras' fit, which goes on "
            "with the step that it has compiled",
            hint="a loop of your own, fit(model, data, context), may do so; or train in two workloads, the "
            "second of which begins with the first one's weights (train.pretrained)",
        )

    def after_step(self, loss: Any) -> None:
        """Save if a checkpoint is due.

        Raises:
            PreemptedError: the process received SIGTERM, and everything is saved.
            BlownUpError: the loss is no longer a number.
            ComponentError: a checkpoint could not be written.
        """
        if getattr(self.model, "stop_training", False):  # by a callback of the user
            # Keras would end the epoch here, whose steps are counted as complete.
            self.reached, self.model.stop_training = replace(self.reached, is_stopped=True), False
        where = f"after step {self.step}"
        if self.previous is not None and self._looking.is_due(self.step):
            self._looking.done(self.step)
            require_loss(self.previous[1], self._job.blow_up, where)
        is_due = self._writer is not None and self._saving.is_due(self.step)
        if self.is_epoch_end or not (self._preemption.is_requested or is_due):
            return  # the end of an epoch is saved after its evaluation
        if loss is not None:
            require_loss(loss, self._job.blow_up, where)
        self.reached = replace(self.reached, step=self.step)
        self._keep(metrics=True)
        self._raise_if_preempted()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Record the epoch's metrics, save, and stop early once patience is exhausted.

        Raises the same errors as `after_step`.
        """
        metrics = numbers_of(logs)
        require_losses(metrics, self._job.blow_up, f"after epoch {epoch + 1}")
        step = (epoch + 1) * self.start.steps_per_epoch
        has_stopped = bool(getattr(self.model, "stop_training", False))  # by a callback of the user
        self.reached = replace(
            self.reached,
            step=step,
            is_stopped=self.reached.is_stopped or has_stopped,
            history=(*self.reached.history, {"epoch": epoch + 1, **metrics}),
            best=best_so_far(
                self.reached.best,
                metrics,
                self._job.checkpoint,
                patience=self._job.early_stopping.patience,
                epoch=epoch + 1,
                step=step,
            ),
        )
        self._keep(metrics=False)
        self._raise_if_preempted()
        self.model.stop_training = self.is_over

    @property
    def is_over(self) -> bool:
        """Whether the training, resumed or not, stops before its last epoch."""
        patience, epochs = self._job.early_stopping.patience, len(self.reached.history)
        return self.reached.is_stopped or stops_early(patience, best=self.reached.best, epochs=epochs)

    def _keep(self, *, metrics: bool) -> None:
        fit_s = self._begin.clock.fit_s + time.monotonic() - self._began_at
        self.reached = replace(self.reached, clock=replace(self._timer.clock, fit_s=fit_s))
        self._saving.done(self.reached.step)
        if self._writer is None and not averages_weights(self.model):
            return
        with self._timer.paused():
            self.state = snapshot(self.model)
            if self._writer is None:
                return
            added_up = metrics_snapshot(self.model) if metrics else ()
            self._writer.write(replace(self.reached, variables=self.state, metrics=added_up))

    def _raise_if_preempted(self) -> None:
        if not self._preemption.is_requested:
            return
        if self._writer is None:
            raise PreemptedError(0)
        self._writer.finish()
        raise PreemptedError(self.reached.step)
