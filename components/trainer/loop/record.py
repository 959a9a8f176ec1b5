"""A Keras callback that notes how far the training is, and keeps that where it can be gone on from."""

import time
from dataclasses import dataclass, replace
from typing import Any

import keras

from components.errors import ComponentError
from components.trainer.checkpoint import Arrays, Best, Checkpoint
from components.trainer.loop.blow_up import LossGuard
from components.trainer.loop.preemption import PreemptedError, Preemption
from components.trainer.loop.state import metrics_snapshot, restore_metrics, snapshot
from components.trainer.loop.stepping import Stepping
from components.trainer.loop.writer import CheckpointWriter
from components.trainer.settings.checkpoint import CheckpointSettings
from components.trainer.settings.early_stopping import EarlyStoppingSettings


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """What a `Record` keeps checkpoints with.

    Attributes:
        settings: when to keep one.
        writer: None: nowhere.
        preemption: whether to leave.
        guard: no checkpoint of a training that has blown up.
        early_stopping: when to stop before the last epoch.
    """

    settings: CheckpointSettings
    writer: CheckpointWriter | None
    preemption: Preemption
    guard: LossGuard
    early_stopping: EarlyStoppingSettings


class Record(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps in `reached` how far the training is, and in the folder, where there is one, all of its state.

    `state` is what was kept last.

    Args:
        begin: where this process began.
        steps_per_epoch: steps in each epoch.
        keeping: with what.
        stepping: the time of the steps.
    """

    def __init__(
        self, begin: Checkpoint, *, steps_per_epoch: int, keeping: Keeping, stepping: Stepping
    ) -> None:
        super().__init__()
        self.reached = replace(begin, variables=(), metrics=())
        self._begin = begin
        self._steps_per_epoch = steps_per_epoch
        self._keeping = keeping
        self._stepping = stepping
        self._began_at = self._kept_at = time.monotonic()
        self._kept_step = begin.step
        self._done_before = 0
        self.state: Arrays = ()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Goes on with the metrics of an epoch that was left in its middle."""
        self._done_before = max(epoch * self._steps_per_epoch, self._begin.step)
        if self._begin.metrics and self._done_before == self._begin.step:
            restore_metrics(self.model, self._begin.metrics)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Saves when it is time.

        Raises:
            PreemptedError: the process was told to end, and all is saved.
            BlownUpError: the loss is no number any more.
            ComponentError: a checkpoint could not be written.
        """
        step = self._done_before + batch + 1
        loss = (logs or {}).get("loss")
        where = f"after step {step}"
        if loss is not None:
            self._keeping.guard.after_step(loss, where)
        is_requested = self._keeping.preemption.is_requested
        if step % self._steps_per_epoch == 0 or not (is_requested or self._is_due(step)):
            return  # the end of an epoch is kept after its evaluation
        if loss is not None:
            self._keeping.guard.check(loss, where)
        self.reached = replace(self.reached, step=step)
        self._keep(metrics=True)
        if is_requested:
            self._leave()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Notes the epoch's metrics, saves, and stops where no better epoch is to be expected.

        Raises as `on_train_batch_end` does.
        """
        metrics = {name: float(value) for name, value in (logs or {}).items()}
        self._keeping.guard.check(metrics["loss"], f"after epoch {epoch + 1}")
        step = (epoch + 1) * self._steps_per_epoch
        self.reached = replace(
            self.reached,
            step=step,
            history=(*self.reached.history, {"epoch": epoch + 1, **metrics}),
            best=self._best(metrics, epoch=epoch + 1, step=step),
        )
        self._keep(metrics=False)
        if self._keeping.preemption.is_requested:
            self._leave()
        self.model.stop_training = self.is_over

    @property
    def is_over(self) -> bool:
        """Whether the best epoch is so long ago that the training stops; also of one that is gone on with."""
        patience, best = self._keeping.early_stopping.patience, self.reached.best
        return (
            patience is not None and best is not None and len(self.reached.history) - best.epoch >= patience
        )

    def _is_due(self, step: int) -> bool:
        settings = self._keeping.settings
        if self._keeping.writer is None:
            return False
        if settings.steps is not None and step // settings.steps > self._kept_step // settings.steps:
            return True
        return settings.minutes is not None and time.monotonic() - self._kept_at >= 60 * settings.minutes

    def _best(self, metrics: dict[str, float], *, epoch: int, step: int) -> Best | None:
        settings, best = self._keeping.settings, self.reached.best
        value = metrics.get(settings.best_metric)
        if value is None and self._keeping.early_stopping.patience is not None:
            raise ComponentError(
                f"train.checkpoint.best_metric ({settings.best_metric}) is not measured, and "
                f"train.early_stopping goes by it; there are {', '.join(metrics)}"
            )
        if value is None or not settings.is_better(value, best.value if best else None):
            return best
        return Best(epoch=epoch, step=step, value=value)

    def _keep(self, *, metrics: bool) -> None:
        fit_s = self._begin.clock.fit_s + time.monotonic() - self._began_at
        self.reached = replace(self.reached, clock=self._stepping.clock(fit_s=fit_s))
        self._kept_step, self._kept_at = self.reached.step, time.monotonic()
        if self._keeping.writer is None:
            return
        with self._stepping.paused():
            self.state = snapshot(self.model)
            added_up = metrics_snapshot(self.model) if metrics else ()
            self._keeping.writer.write(replace(self.reached, variables=self.state, metrics=added_up))

    def _leave(self) -> None:
        if self._keeping.writer is None:
            raise PreemptedError(0)
        self._keeping.writer.finish()
        raise PreemptedError(self.reached.step)
