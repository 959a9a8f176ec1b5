"""Tracks the best epoch so far, and decides whether the training stops early. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from slipway.components.errors import ComponentError
from slipway.components.trainer.settings.checkpoint import CheckpointSettings


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best epoch so far.

    Attributes:
        epoch: its number, from 1.
        step: complete steps at its end.
        value: of the deciding metric.
    """

    epoch: int
    step: int
    value: float


def stops_early(patience: int | None, *, best: Best | None, epochs: int) -> bool:
    """Return True if no better epoch is to be expected.

    Args:
        patience: epochs without a better one after which the training stops, >= 1; None: it does not.
        epochs: complete epochs.
    """
    return patience is not None and best is not None and epochs - best.epoch >= patience


def best_so_far(
    best: Best | None,
    metrics: Mapping[str, float],
    settings: CheckpointSettings,
    *,
    patience: int | None,
    epoch: int,
    step: int,
) -> Best | None:
    """Return the best epoch so far, including this one.

    Args:
        best: the best of the epochs before.
        metrics: of this epoch, by name.
        settings: name the metric, and whether higher is better.
        patience: as in `stops_early`.
        epoch: the number of this epoch, >= 1.
        step: complete steps at its end.

    Raises:
        ComponentError: the training stops early, or the best epoch is exported, by a metric that is not
            measured.
    """
    value = metrics.get(settings.best_metric)
    if value is None and (patience is not None or settings.serve_best):
        key = "checkpoint.serve_best" if patience is None else "early_stopping"
        raise ComponentError(
            f"train.checkpoint.best_metric ({settings.best_metric}) is not measured, and "
            f"train.{key} goes by it; there are {', '.join(metrics)}"
        )
    if value is None or not settings.is_better(value, best.value if best else None):
        return best
    return Best(epoch=epoch, step=step, value=value)
