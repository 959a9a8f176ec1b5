"""When a checkpoint is due: after so many steps, when the last is so old, and at the end of each epoch."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from small_job import small_job

from slipway.components.errors import ComponentError
from slipway.components.trainer.checkpoint_files import Checkpoint, Clock
from slipway.components.trainer.loop.preemption import Preemption
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.early_stopping import EarlyStoppingSettings

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

STEPS = 6


class Steps:
    """Notes the steps that are written."""

    def __init__(self):
        self.kept = []

    def write(self, checkpoint):
        self.kept.append(checkpoint.step)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (CheckpointSettings(minutes=None), [6, 12]),
        (CheckpointSettings(minutes=60), [6, 12]),
        (CheckpointSettings(minutes=1e-9), list(range(1, 13))),
        (CheckpointSettings(minutes=None, steps=4), [4, 6, 8, 12]),
    ],
)
def test_checkpoints_come_by_steps_by_minutes_and_at_the_end_of_an_epoch(settings, kept):
    import keras

    writer = Steps()
    saving = _saving(writer=writer, checkpoint=settings)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    rows = np.ones((STEPS * 4, 2), "float32")
    model.fit(rows, rows[:, :1], batch_size=4, epochs=2, verbose=0, callbacks=[saving._timer, saving])
    assert writer.kept == kept


def test_loss_of_the_call_before_is_looked_at_and_only_twice_a_second(monkeypatch):
    from slipway.components.trainer.loop import callback
    from slipway.components.trainer.loop.blow_up import BlownUpError
    from slipway.components.trainer.loop.checkpoint_callback import LOSS_INTERVAL_S

    now = [100.0]
    monkeypatch.setattr(callback, "time", SimpleNamespace(monotonic=lambda: now[0]))
    saving = _saving()
    saving.on_train_batch_end(0, {"loss": math.nan})
    saving.on_train_batch_end(1, {"loss": 1.0})  # too early to look
    now[0] += LOSS_INTERVAL_S
    saving.on_train_batch_end(2, {"loss": math.nan})  # looks at that of step 2
    now[0] += LOSS_INTERVAL_S
    with pytest.raises(BlownUpError, match="the loss is nan after step 4"):
        saving.on_train_batch_end(3, {"loss": 1.0})


@pytest.mark.parametrize(("patience", "stops_after"), [(None, None), (1, 3), (2, 4), (9, None)])
def test_it_stops_so_many_epochs_after_the_best(patience, stops_after):
    record = _record(patience)
    seen = []
    for epoch, loss in enumerate([3.0, 1.0, 2.0, 1.5, 1.2]):
        record.on_epoch_end(epoch, {"loss": 0.0, "val_loss": loss})
        seen.append(record.model.stop_training)
        if seen[-1]:
            break
    assert seen.index(True) + 1 == stops_after if stops_after else not any(seen)
    assert record.reached.best.epoch == 2


def test_one_that_had_stopped_is_not_gone_on_with():
    stopped = _record(2)
    for epoch, loss in enumerate([1.0, 2.0, 2.0]):
        stopped.on_epoch_end(epoch, {"loss": 0.0, "val_loss": loss})
    assert _record(2, begin=stopped.reached).is_over
    assert not _record(3, begin=stopped.reached).is_over


def test_one_that_a_callback_of_the_user_s_had_stopped_is_not_gone_on_with():
    at_its_end, within = _saving(), _saving()
    at_its_end.model.stop_training = within.model.stop_training = True
    within.on_train_batch_end(1, {"loss": 1.0})
    assert not within.model.stop_training, "Keras would end the epoch, whose steps are counted as complete"
    for stopped in (at_its_end, within):
        stopped.on_epoch_end(0, {"loss": 1.0})
        assert stopped.model.stop_training
        assert _saving(begin=stopped.reached).is_over
    gone_on = _saving()
    gone_on.on_epoch_end(0, {"loss": 1.0})
    assert not _saving(begin=gone_on.reached).is_over


def test_a_metric_that_is_not_measured_stops_nothing_in_silence():
    with pytest.raises(ComponentError, match="there are loss, auc"):
        _record(2).on_epoch_end(0, {"loss": 0.5, "auc": 0.9})


def _record(patience, begin=None):
    return _saving(begin, early_stopping=EarlyStoppingSettings(patience=patience))


def _saving(begin=None, writer=None, **settings):
    import keras

    from slipway.components.trainer.loop.callback import FitStart
    from slipway.components.trainer.loop.checkpoint_callback import Checkpointing
    from slipway.components.trainer.loop.step_time import StepTimer

    job = small_job(
        epochs=9,
        **settings,
    )
    start = FitStart(steps_per_epoch=STEPS)
    saving = Checkpointing(
        begin or Checkpoint(),
        job,
        start,
        timer=StepTimer(Clock(), start),
        preemption=Preemption(),
        writer=writer,
    )
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    saving.set_model(model)
    return saving
