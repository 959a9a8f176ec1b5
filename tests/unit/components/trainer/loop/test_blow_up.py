"""A training has blown up when its loss is no number, or above the limit; that is looked at now and then."""

import math
from types import SimpleNamespace

import pytest

from components.trainer.loop import blow_up
from components.trainer.loop.blow_up import LOOK_INTERVAL_S, BlownUpError, LossGuard
from components.trainer.settings.blow_up import BlowUpSettings


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_loss_that_is_no_number_is_one_without_any_limit(loss):
    with pytest.raises(BlownUpError, match=r"the loss is (nan|-?inf) after step 7"):
        LossGuard(BlowUpSettings()).check(loss, "after step 7")


def test_loss_above_the_limit_is_told_with_the_limit():
    guard = LossGuard(BlowUpSettings(loss_limit=10.0))
    guard.check(10.0, "after step 6")
    with pytest.raises(BlownUpError, match=r"10\.5 after step 7, above train\.blow_up\.loss_limit \(10\)"):
        guard.check(10.5, "after step 7")


def test_loss_of_the_call_before_is_looked_at_and_only_twice_a_second(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(blow_up, "time", SimpleNamespace(monotonic=lambda: now[0]))
    guard = LossGuard(BlowUpSettings())
    guard.after_step(math.nan, "after step 1")
    guard.after_step(1.0, "after step 2")  # too early to look
    now[0] += LOOK_INTERVAL_S
    guard.after_step(math.nan, "after step 3")  # looks at that of step 2
    now[0] += LOOK_INTERVAL_S
    with pytest.raises(BlownUpError, match="the loss is nan after step 4"):
        guard.after_step(1.0, "after step 4")
