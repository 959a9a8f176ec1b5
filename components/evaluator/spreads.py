"""How far chance moves each metric, from the replicates of the bootstrap. Pure."""

import math
from collections.abc import Iterator

import numpy as np

from slipway.components.evaluator.bootstrap import REPLICATES
from slipway.components.evaluator.grouped_sums import Floats
from slipway.components.evaluator.request import Request
from slipway.components.evaluator.results import values_of
from slipway.components.evaluator.row_values import CONFUSION, CURVES
from slipway.components.evaluator.slices import SliceKey
from slipway.components.evaluator.tally import COARSE_BUCKETS, ModelTally, Tally
from slipway.components.model_gate.intervals import FEW_FREEDOM, Spread
from slipway.components.model_gate.metrics import METRICS, output_of

Spreads = dict[tuple[str, str, bool], Spread]
"""By model, metric, and whether it is of the difference to the baseline."""

# What so many rows could have changed is never excluded: where no row speaks against a model the replicates
# are all the same, and still 3 of n rows may (J. A. Hanley, A. Lippman-Hand, If nothing goes wrong, is
# everything all right?, JAMA 249 (1983)); 1.67 * 2 is that 3.
_ROWS_AT_LEAST = 2

_ACCURACIES = {metric.class_name for metric in METRICS.values() if metric.interval == "proportion"}


def spreads(request: Request, tally: Tally) -> dict[SliceKey, Spreads]:
    """The spread of every metric, by slice, and of its difference to the baseline's.

    There is none where a slice has one row only, where a value is no number, or where there are too many
    slices (`tally.MOST_SLICES_WITH_BOUNDS`).

    Args:
        request: what was asked for.
        tally: what was counted.
    """
    many = tally.bounded
    if not many:
        return {}
    found: dict[SliceKey, Spreads] = {key: {} for key in tally.keys[:many]}
    for model in tally.models:
        model.curve.compact()
    telling = tally.telling[:many]
    for name, class_name in request.metrics.items():
        pairs = zip(request.models, tally.models, strict=True)
        heads, models = zip(*((a, m) for a, m in pairs if a.output == output_of(name)), strict=True)
        baseline = next((place for place, head in enumerate(heads) if head.is_baseline), None)
        values = [_replicates(class_name, model, many) for model in models]
        least = [_ROWS_AT_LEAST / _counted(class_name, model, telling) for model in models]
        weights = tally.weights[:many, 0]
        deciding = [telling * _deciding(class_name, model, weights) for model in models]
        for place, asked in enumerate(heads):
            errors = np.maximum(_errors(values[place]), least[place])
            for key, spread in _told(tally, errors, deciding[place]):
                found[key][asked.name, name, False] = spread
            if baseline is not None and place != baseline:
                with np.errstate(invalid="ignore"):  # infinity less infinity
                    apart = values[place] - values[baseline]
                fewer = np.minimum(deciding[place], deciding[baseline])
                # Models of which no row tells one from the other do not differ, by chance or otherwise; and a
                # row that changes its rank moves an area by less than one that changes sides moves a share.
                is_floored = (apart != 0).any(1) & ((class_name not in CURVES) | (fewer <= FEW_FREEDOM))
                floor = np.where(is_floored, np.maximum(least[place], least[baseline]), 0)
                errors = np.maximum(_errors(apart), floor)
                for key, spread in _told(tally, errors, fewer):
                    found[key][asked.name, name, True] = spread
    return found


def _told(tally: Tally, errors: Floats, deciding: Floats) -> Iterator[tuple[SliceKey, Spread]]:
    each = zip(tally.keys, tally.rows.tolist(), errors.tolist(), deciding.tolist(), strict=False)
    for key, rows, error, few in each:
        if not math.isnan(error) and rows > 1 and (key == () or not tally.is_cut):
            yield key, Spread(error, max(min(int(few), REPLICATES) - 1, 1))


def _replicates(class_name: str, model: ModelTally, many: int) -> Floats:
    """The metric's value in each, [slices, REPLICATES]."""
    if class_name in CURVES:
        curves = model.replicates.sums["curve"][:many]
        return np.stack([_areas(curve) for curve in curves])
    sums = model.replicates.sums["confusion" if class_name in CONFUSION else class_name]
    with np.errstate(invalid="ignore"):
        found: Floats = values_of(class_name, sums[:many])
    return found


def _areas(curve: Floats) -> Floats:
    """The area under each replicate's curve, by how many positives lie above each negative."""
    positives, negatives = np.moveaxis(curve.astype(np.float64).reshape(COARSE_BUCKETS, 2, REPLICATES), 1, 0)
    pairs = positives.sum(0) * negatives.sum(0)
    above = positives[::-1].cumsum(0)[::-1] - positives / 2
    found: Floats = np.full(REPLICATES, np.nan)
    np.divide((above * negatives).sum(0), pairs, out=found, where=pairs > 0)
    return found


def _errors(values: Floats) -> Floats:
    """Their standard deviation; NaN where fewer than half of them are numbers."""
    known = np.isfinite(values)
    many = known.sum(1)
    enough = many >= REPLICATES // 2
    count = np.maximum(many, 2)
    middle = np.where(known, values, 0).sum(1) / count
    apart = np.where(known, values, middle[:, None]) - middle[:, None]
    found: Floats = np.where(enough, np.sqrt((apart**2).sum(1) / (count - 1)), np.nan)
    return found


def _counted(class_name: str, model: ModelTally, telling: Floats) -> Floats:
    """Over how many rows each slice's share or area is counted, at least 1; 1 for a count, infinity for what
    is neither. `telling`: rows by what they weigh, of each slice, see `Tally.telling`."""
    many = len(telling)
    if class_name not in CURVES | _ACCURACIES | CONFUSION:
        return np.full(many, np.inf)
    if class_name not in CONFUSION:
        found = _deciding(class_name, model, np.zeros(many))
    else:
        tp, tn, fp, fn = model.sums["confusion"][:many].T
        whole: dict[str, Floats] = {
            "BinaryAccuracy": tp + tn + fp + fn,
            "Precision": tp + fp,
            "Recall": tp + fn,
            "F1Score": 2 * tp + fp + fn,
        }
        if class_name not in whole:
            return telling
        found = whole[class_name]
    return np.maximum(found * telling, 1.0)


def _deciding(class_name: str, model: ModelTally, rows: Floats) -> Floats:
    """How many rows each slice's value depends on, or what these weigh: of an area those of its rarer class,
    of a recall the positives."""
    if class_name in CURVES:
        return np.array([model.curve.of_slice(place)[1].sum(0).min() for place in range(len(rows))])
    if class_name in _ACCURACIES - CONFUSION:
        return model.sums[class_name][: len(rows), 1]
    if class_name not in CONFUSION:
        return rows
    tp, tn, fp, fn = model.sums["confusion"][: len(rows)].T
    of: dict[str, Floats] = {"BinaryAccuracy": tp + tn + fp + fn, "Precision": tp + fp}
    of |= dict.fromkeys(("TrueNegatives", "FalsePositives"), tn + fp)
    found: Floats = of.get(class_name, tp + fn)
    return found
