"""Whether a lower or a higher metric is better is known or asked for, never guessed."""

import math

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.settings.checkpoint import CheckpointSettings, goal_of, wrong_goal


@pytest.mark.parametrize(
    ("metric", "goal", "words"),
    [
        ("val_auc", "min", "must be max: of val_auc higher is better"),
        ("accuracy", "min", "must be max: of accuracy higher is better"),
        ("val_tip_auc", "min", "must be max: of val_tip_auc higher is better"),
        ("val_auc_1", "min", "must be max: of val_auc_1 higher is better"),
        ("val_acc", "min", "must be max: of val_acc higher is better"),
        ("val_cost_loss", "max", "must be min: of val_cost_loss lower is better"),
        (
            "val_cost_mean_absolute_error",
            "max",
            "must be min: of val_cost_mean_absolute_error lower is better",
        ),
        ("val_mae", "max", "must be min: of val_mae lower is better"),
        ("val_loss", "max", "must be min: of val_loss lower is better"),
        ("val_mean_absolute_error", "max", "must be min: of val_mean_absolute_error lower is better"),
    ],
)
def test_a_goal_that_would_take_the_worst_is_told(metric, goal, words):
    assert wrong_goal(metric, goal) == words
    assert wrong_goal(metric, "min" if goal == "max" else "max") == ""


@pytest.mark.parametrize("goal", ["min", "max"])
@pytest.mark.parametrize("metric", ["val_gain", "learning_rate", "val_inaccuracy"])
def test_of_metrics_that_may_be_either_any_goal_is_right(metric, goal):
    assert wrong_goal(metric, goal) == ""


@pytest.mark.parametrize("metric", ["val_gain", "val_interval_coverage", "val_inaccuracy"])
def test_the_goal_of_a_metric_of_ones_own_is_asked_for(metric):
    assert goal_of(metric) is None
    assert wrong_goal(metric, None).startswith(f"must be max or min: nothing is known of {metric}")
    with pytest.raises(ComponentError, match=f"best_goal must be max or min: nothing is known of {metric}"):
        CheckpointSettings(best_metric=metric).is_better(0.5, 0.4)
    assert CheckpointSettings(best_metric=metric, best_goal="max").is_better(0.5, 0.4)


@pytest.mark.parametrize(("metric", "goal"), [("val_loss", "min"), ("val_auc", "max"), ("val_mse", "min")])
def test_the_goal_of_a_known_metric_need_not_be_said(metric, goal):
    assert CheckpointSettings(best_metric=metric).best_goal == goal


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("goal", ["min", "max"])
def test_a_value_that_is_not_finite_is_never_the_best(value, goal):
    settings = CheckpointSettings(best_metric="val_mine", best_goal=goal)
    assert not settings.is_better(value, None)
    assert not settings.is_better(value, 0.5)
    assert settings.is_better(0.5, None)


def test_nothing_is_known_of_a_metric_without_a_name():
    assert goal_of("val_") is None
