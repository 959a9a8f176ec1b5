"""The best epoch so far, and when a training stops after it."""

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.loop.early_stopping import (
    Best,
    best_so_far,
    require_both_classes,
    stops_early,
)
from slipway.components.trainer.settings.checkpoint import CheckpointSettings

SETTINGS = CheckpointSettings(best_metric="val_loss")
THIRD = Best(epoch=3, step=30, value=0.5)


@pytest.mark.parametrize(
    ("patience", "best", "epochs", "stops"),
    [
        (None, THIRD, 90, False),
        (2, None, 1, False),
        (2, None, 2, True),
        (2, THIRD, 4, False),
        (2, THIRD, 5, True),
        (2, THIRD, 6, True),
    ],
)
def test_it_stops_when_the_best_epoch_is_as_long_ago_as_the_patience(patience, best, epochs, stops):
    assert stops_early(patience, best=best, epochs=epochs) == stops


@pytest.mark.parametrize(
    ("before", "value", "expected"),
    [
        (None, 0.9, Best(epoch=4, step=40, value=0.9)),
        (THIRD, 0.4, Best(epoch=4, step=40, value=0.4)),
        (THIRD, 0.6, THIRD),
    ],
)
def test_better_epoch_takes_the_place_of_the_best(before, value, expected):
    found = best_so_far(before, {"val_loss": value}, SETTINGS, patience=1, epoch=4, step=40)
    assert found == expected


@pytest.mark.parametrize(
    ("settings", "patience", "key"),
    [
        (SETTINGS, 3, "train.early_stopping"),
        (CheckpointSettings(serve_best=True), None, "train.checkpoint.serve_best"),
    ],
)
def test_metric_that_is_not_measured_is_refused_only_where_something_goes_by_it(settings, patience, key):
    metrics = {"loss": 1.0, "auc": 0.5}
    assert best_so_far(THIRD, metrics, SETTINGS, patience=None, epoch=4, step=40) == THIRD
    with pytest.raises(
        ComponentError, match=rf"\(val_loss\) is not measured, and {key} goes by it; there are loss, auc$"
    ):
        best_so_far(THIRD, metrics, settings, patience=patience, epoch=4, step=40)


@pytest.mark.parametrize(
    ("labels", "metric", "is_refused"),
    [
        ([0, 0, 0], "val_auc", True),
        ([1, 1], "val_recall_1", True),
        ([0, 1, 0], "val_auc", False),
        ([0, 0, 0], "val_loss", False),
        ([0, 0, 0], "val_binary_accuracy", False),
        ([0, 0, 0], "val_mine", False),
    ],
)
def test_rows_of_one_class_measure_nothing_that_tells_two_apart(labels, metric, is_refused):
    values = np.array(labels, np.float32)
    if not is_refused:
        require_both_classes(values, name="tip", metric=metric)
        return
    with pytest.raises(
        ComponentError, match=f"tip is {labels[0]} in each of the {len(labels)} rows"
    ) as refused:
        require_both_classes(values, name="tip", metric=metric)
    assert "train.early_stopping.share" in refused.value.hint
