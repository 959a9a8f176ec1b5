import pytest

from slipway.components.trainer.settings.learning_rate import LearningRateSettings


@pytest.mark.parametrize(("scale", "factor"), [("none", 1.0), ("linear", 16.0), ("sqrt", 4.0)])
def test_learning_rate_follows_the_batch_by_rule(scale, factor):
    assert LearningRateSettings(scale=scale, base_batch_size=256).factor(4096) == factor
