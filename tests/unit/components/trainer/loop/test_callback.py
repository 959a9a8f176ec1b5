"""Steps are counted over the whole training, and what is done now and then is due by steps or seconds."""

from types import SimpleNamespace

import numpy as np
import pytest

from slipway.components.errors import ComponentError

pytestmark = pytest.mark.filterwarnings("default")  # TensorFlow's own imports warn


@pytest.fixture
def seen():
    """Steps, ends of epochs and the losses of the calls before, for fits given by their epoch and batches."""
    from slipway.components.trainer.loop.callback import FitStart, StepCallback

    class Seen(StepCallback):
        def __init__(self, start):
            super().__init__(start)
            self.steps = []

        def after_step(self, loss):
            self.steps.append((self.step, self.is_epoch_end, self.previous))

    def call(fits, **start):
        callback = Seen(FitStart(steps_per_epoch=4, **start))
        for epoch, batches in fits:
            callback.on_epoch_begin(epoch)
            for batch in batches:
                callback.on_train_batch_end(batch, {"loss": epoch + batch / 10})
        return callback.steps

    return call


def test_steps_go_on_from_epoch_to_epoch(seen):
    assert [step for step, *_ in seen([(0, range(4)), (1, range(4))])] == list(range(1, 9))


def test_with_several_steps_in_a_call_the_last_of_them_counts(seen):
    assert seen([(0, [1, 3]), (1, [1])]) == [
        (2, False, None),
        (4, True, (2, 0.1)),
        (6, False, (4, 0.3)),
    ]


def test_the_rest_of_an_epoch_counts_from_where_it_was_left(seen):
    assert [each[:2] for each in seen([(1, range(2)), (2, range(1))], first_step=6)] == [
        (7, False),
        (8, True),
        (9, False),
    ]


def test_a_call_without_a_loss_leaves_none_behind():
    from slipway.components.trainer.loop.callback import FitStart, StepCallback

    callback = StepCallback(FitStart(steps_per_epoch=4))
    callback.on_epoch_begin(0)
    callback.on_train_batch_end(0, {"loss": 0.5})
    assert callback.previous == (1, 0.5)
    callback.on_train_batch_end(1, {})
    assert (callback.step, callback.previous) == (2, None)


def test_what_is_due_by_steps_is_so_at_each_multiple_or_after_it():
    from slipway.components.trainer.loop.callback import PeriodicSchedule

    every = PeriodicSchedule(steps=10, first_step=15)
    assert not every.is_due(19)
    assert every.is_due(20)
    assert every.is_due(23)
    every.done(23)
    assert not every.is_due(29)
    assert every.is_due(30)


def test_what_is_due_by_seconds_is_so_by_the_clock_alone(monkeypatch):
    from slipway.components.trainer.loop import callback

    now = [100.0]
    monkeypatch.setattr(callback, "time", SimpleNamespace(monotonic=lambda: now[0]))
    every = callback.PeriodicSchedule(seconds=5.0)
    now[0] += 4.9
    assert not every.is_due(1_000)
    now[0] += 0.1
    assert every.is_due(1)
    every.done(1)
    assert not every.is_due(2)


def test_without_steps_and_seconds_it_is_never_due():
    from slipway.components.trainer.loop.callback import PeriodicSchedule

    assert not PeriodicSchedule().is_due(10**9)


def test_a_metric_of_several_numbers_becomes_a_number_for_each():
    from slipway.components.trainer.loop.callback import numbers_of

    logs = {"loss": np.float32(0.5), "f1_score": np.array([0.25, 0.75]), "one": np.array([[1.0]])}
    assert numbers_of(logs) == {"loss": 0.5, "f1_score_0": 0.25, "f1_score_1": 0.75, "one": 1.0}
    assert numbers_of(None) == {}


def test_what_a_callback_adds_to_the_logs_that_is_no_number_is_left_out():
    from slipway.components.trainer.loop.callback import numbers_of

    assert numbers_of({"loss": 1, "note": "low", "parts": {"a": 1}, "learning_rate": 0.5}) == {
        "loss": 1.0, "learning_rate": 0.5
    }  # fmt: skip


def test_a_loss_for_each_row_is_refused_at_its_first_step_and_at_the_end_of_an_epoch():
    from slipway.components.trainer.loop.callback import FitStart, StepCallback, numbers_of

    callback = StepCallback(FitStart(steps_per_epoch=4))
    callback.on_epoch_begin(0)
    with pytest.raises(ComponentError, match=r"a 'loss' of the shape \(8,\), and not one number"):
        callback.on_train_batch_end(0, {"loss": np.zeros(8)})
    with pytest.raises(ComponentError, match="returns a 'loss' of the shape"):
        numbers_of({"loss": np.zeros(8)})
