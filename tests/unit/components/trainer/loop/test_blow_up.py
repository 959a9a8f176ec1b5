"""A training has blown up when its loss is no number, or above the limit."""

import math

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.loop.blow_up import BlownUpError, require_loss, require_losses
from slipway.components.trainer.settings.blow_up import BlowUpSettings


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_loss_that_is_no_number_is_one_without_any_limit(loss):
    with pytest.raises(BlownUpError, match=r"the loss is (nan|-?inf) after step 7"):
        require_loss(loss, BlowUpSettings(), "after step 7")


def test_loss_above_the_limit_is_reported_with_the_limit():
    settings = BlowUpSettings(loss_limit=10.0)
    require_loss(10.0, settings, "after step 6")
    with pytest.raises(BlownUpError, match=r"10\.5 after step 7, above train\.blow_up\.loss_limit \(10\)"):
        require_loss(10.5, settings, "after step 7")


def test_where_no_loss_is_named_all_that_is_trained_on_must_be_finite():
    require_losses({"d_loss": 0.1, "g_loss": 3.0, "val_loss": math.nan}, BlowUpSettings(), "after epoch 1")
    with pytest.raises(BlownUpError, match=r"the loss is nan \(g_loss\) after epoch 1"):
        require_losses({"d_loss": 0.1, "g_loss": math.nan}, BlowUpSettings(), "after epoch 1")


def test_a_limit_of_a_loss_that_is_not_named_is_refused():
    limited = BlowUpSettings(loss_limit=10.0)
    require_losses({"loss": 1.0, "share": 11.0}, limited, "after epoch 1")
    with pytest.raises(ComponentError, match="returns no 'loss'; there are d_loss, g_loss"):
        require_losses({"d_loss": 0.1, "g_loss": 3.0}, limited, "after epoch 1")
