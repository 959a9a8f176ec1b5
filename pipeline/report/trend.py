"""One number over time as a small line: from run to run, or in a training from epoch to epoch. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

WIDTH_PX, HEIGHT_PX = 200.0, 40.0
EVAL = "val_"
_LOSS = "loss"
# More points than this cannot be told apart in a line of this size, and a page may hold thousands of lines.
_SHOWN_POINTS = 60


@dataclass(frozen=True)
class Trend:
    """One number over time, the oldest value first.

    Attributes:
        name: of the metric, or `wall time`.
        points: as SVG wants them.
        low: the least value, in words.
        high: the greatest one.
        first: the oldest one.
        last: the newest one.
        last_value: the newest one, as a number.
        count: the number of values, each of a run or an epoch.
    """

    name: str
    points: str
    low: str
    high: str
    first: str
    last: str
    last_value: float
    count: int


def trend(name: str, values: Sequence[float], *, unit: str = "") -> Trend | None:
    """Return one number over time; None without at least two values.

    Args:
        values: the oldest first; what is not finite is left out.
        unit: behind each number.
    """
    known = [value for value in values if math.isfinite(value)]
    if len(known) < 2:
        return None
    low, high = min(known), max(known)
    height = high - low or 1.0
    step = -(-(len(known) - 1) // _SHOWN_POINTS)
    shown = [*range(0, len(known) - 1, step), len(known) - 1]
    points = " ".join(
        f"{WIDTH_PX * at / (len(known) - 1):.1f},{HEIGHT_PX * (1 - (known[at] - low) / height):.1f}"
        for at in shown
    )
    least, most, first, last = (f"{value:.4g}{unit}" for value in (low, high, known[0], known[-1]))
    return Trend(name, points, least, most, first, last, known[-1], len(known))


def training_trend(epochs: object) -> Trend | None:
    """Return the course of a training: its loss on the eval split by epoch, or what comes closest to that.

    Without `val_loss` that is the first other number of the eval split, then `loss`, then any number. None if
    no number was recorded for two epochs.

    Args:
        epochs: the `epochs` of the Trainer's `history.json`: one record an epoch, `epoch` and each metric by
            name. What does not have this form is left out.
    """
    records = [each for each in epochs if isinstance(each, Mapping)] if isinstance(epochs, Sequence) else []
    names = dict.fromkeys(str(name) for record in records for name in record if name != "epoch")
    for name in sorted(names, key=_distance):
        if found := trend(name, list(_numbers(records, name))):
            return found
    return None


def _distance(name: str) -> int:
    wanted = (name == EVAL + _LOSS, name.startswith(EVAL), name == _LOSS)
    return wanted.index(True) if True in wanted else len(wanted)


def _numbers(records: Iterable[Mapping[str, object]], name: str) -> Iterator[float]:
    for value in (record.get(name) for record in records):
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield float(value)
