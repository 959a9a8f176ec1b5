"""Tracks the best epoch so far, and decides whether the training stops early. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.trainer.settings.checkpoint import CheckpointSettings, known_metric


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
        best: None: the metric was no number in any epoch so far.
        epochs: complete epochs.
    """
    return patience is not None and epochs - (best.epoch if best else 0) >= patience


def require_best(best: Best | None, settings: CheckpointSettings, *, patience: int | None) -> None:
    """Reject the end of a training of which the best epoch is to be exported, and that has none.

    Args:
        best: None: the metric was no number in any epoch.
        settings: name the metric.
        patience: as in `stops_early`.

    Raises:
        ComponentError: there is none.
    """
    if best is None:
        raise ComponentError(
            f"train.checkpoint.best_metric ({settings.best_metric}) was no number in any epoch, and "
            f"{_by(patience)} goes by it",
            hint="look for infinite values in the rows that it is measured on, or name another metric",
        )


def require_both_classes(labels: npt.NDArray[Any], *, name: str, metric: str) -> None:
    """Reject rows held out for early stopping that are all of one class, where the metric tells two apart.

    Keras' area, recall and the like are then 0 in each epoch: the first one would be the best.

    Args:
        labels: of the rows that are held out and weigh something.
        name: of the label.
        metric: `checkpoint.best_metric`.

    Raises:
        ComponentError: they are.
    """
    known = known_metric(metric)
    if known is None or not known.needs_both_classes or len(np.unique(labels)) != 1:
        return
    raise ComponentError(
        f"{name} is {labels.flat[0]:g} in each of the {len(labels):,} rows that train.early_stopping holds "
        f"out, and train.checkpoint.best_metric ({metric}) tells two classes apart",
        hint="raise train.early_stopping.share, or set train.checkpoint.best_metric to val_loss",
    )


def _by(patience: int | None) -> str:
    """Return the key that goes by the best epoch."""
    return "train.checkpoint.serve_best" if patience is None else "train.early_stopping"


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
        raise ComponentError(
            f"train.checkpoint.best_metric ({settings.best_metric}) is not measured, and "
            f"{_by(patience)} goes by it; there are {', '.join(metrics)}"
        )
    if value is None or not settings.is_better(value, best.value if best else None):
        return best
    return Best(epoch=epoch, step=step, value=value)
