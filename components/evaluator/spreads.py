"""Computes how far chance moves each metric, from the replicates of the bootstrap. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from slipway.components.evaluator.bootstrap import REPLICATES
from slipway.components.evaluator.grouped_sums import Floats
from slipway.components.evaluator.metric_values import mean_of_known, values_of
from slipway.components.evaluator.model_tally import COARSE_BUCKETS, ModelTally, squares_of
from slipway.components.evaluator.request import RANKS, Request
from slipway.components.evaluator.slices import SliceKey
from slipway.components.evaluator.tally import Tally
from slipway.components.metrics.definitions import BY_CLASS, CONFUSION, CURVES, Cells, of_output, output_of
from slipway.components.model_gate.interval_formulas import FEW_FREEDOM, Spread

Spreads = dict[tuple[str, str, bool], Spread]
"""Spreads by model, metric, and whether the value is the difference to the baseline."""

# A standard error is at least that of a change of 2 rows: if no row speaks against a model, all replicates
# are equal, and yet up to 3 of n rows may (J. A. Hanley, A. Lippman-Hand, If nothing goes wrong, is
# everything all right?, JAMA 249 (1983)); that 3 is 2 times 1.67, Student's t of a bound. The same holds for
# groups of rows.
_ROWS_AT_LEAST = 2

_ACCURACIES = {name for name, metric in BY_CLASS.items() if metric.interval == "proportion"}


def spreads(request: Request, tally: Tally) -> dict[SliceKey, Spreads]:
    """Return the spread of every metric, and of its difference to the baseline's, by slice.

    There is none if a slice has only one row, if a value is not a number, or if there are too many slices
    (`bootstrap.MOST_SLICES_WITH_BOUNDS`).
    """
    many = tally.bounded
    if not many:
        return {}
    found: dict[SliceKey, Spreads] = {key: {} for key in tally.keys[:many]}
    for model in tally.models:
        model.curve.compact()
    metrics = {**request.metrics, **request.averages}
    by_output: dict[str, list[_Chance]] = {}
    for name, class_name in request.metrics.items():
        by_output[name] = [
            _Chance.of(class_name, model, tally, many)
            for asked, model in zip(request.models, tally.models, strict=True)
            if asked.output == output_of(name)
        ]
    for name in request.averages:
        parts = [by_output[of_output(output, name)] for output in tally.labels]
        by_output[name] = [_Chance.of_mean(each) for each in zip(*parts, strict=True)]
    names = list(dict.fromkeys(asked.name for asked in request.models))
    baseline = next((names.index(asked.name) for asked in request.models if asked.is_baseline), None)
    for name, chances in by_output.items():
        for place, chance in enumerate(chances):
            errors = _errors(chance.values, chance.least)
            for key, spread in _told(tally, errors, chance.deciding):
                found[key][names[place], name, False] = spread
            if baseline is not None and place != baseline:
                errors, fewer = _apart(chance, chances[baseline], is_ranked=metrics[name] in CURVES | RANKS)
                for key, spread in _told(tally, errors, fewer):
                    found[key][names[place], name, True] = spread
    return found


@dataclass(frozen=True, slots=True)
class _Chance:
    """The spread of a metric of one model.

    Attributes:
        values: the metric in each replicate, [slices, REPLICATES].
        least: lower limit of its standard error, [slices].
        deciding: number of rows that its value depends on, [slices].
    """

    values: Floats
    least: Floats
    deciding: Floats

    @classmethod
    def of(cls, class_name: str, model: ModelTally, tally: Tally, many: int) -> Self:
        """Return the spread of the metric of one output."""
        return cls(
            _replicates(class_name, model, many),
            _ROWS_AT_LEAST / _counted(class_name, model, tally, many),
            _deciding(class_name, model, tally, many),
        )

    @classmethod
    def of_mean(cls, outputs: Sequence[Self]) -> Self:
        """Return the spread of the mean over the outputs that have a value."""
        deciding = np.array([each.deciding for each in outputs])
        known = deciding > 0
        many = np.maximum(known.sum(0), 1)
        # The lower limits add up as independent errors do.
        least = np.where(known, [each.least for each in outputs], 0.0)
        return cls(
            mean_of_known(np.array([each.values for each in outputs])),
            np.sqrt((least**2).sum(0)) / many,
            deciding.sum(0) / many,
        )


def _apart(ours: _Chance, theirs: _Chance, *, is_ranked: bool) -> tuple[Floats, Floats]:
    """Return the standard error of two models' difference, and the number of rows that it depends on."""
    with np.errstate(invalid="ignore"):  # infinity less infinity
        apart = ours.values - theirs.values
    fewer = np.minimum(ours.deciding, theirs.deciding)
    # The lower limit does not apply to models that no row tells apart: they do not differ, by chance or
    # otherwise. Nor to ranked metrics of enough rows: a row that changes its rank moves an area, or a group's
    # value, by less than a row that changes sides moves a share.
    is_floored = (apart != 0).any(1) & ((fewer <= FEW_FREEDOM) | (not is_ranked))
    return _errors(apart, np.where(is_floored, np.maximum(ours.least, theirs.least), 0)), fewer


def _told(tally: Tally, errors: Floats, deciding: Floats) -> Iterator[tuple[SliceKey, Spread]]:
    each = zip(tally.keys, tally.rows.tolist(), errors.tolist(), deciding.tolist(), strict=False)
    for key, rows, error, few in each:
        if not math.isnan(error) and rows > 1 and (key == () or not tally.is_cut):
            yield key, Spread(error, max(min(int(few), REPLICATES) - 1, 1))


def _replicates(class_name: str, model: ModelTally, many: int) -> Floats:
    """Return the metric's value in each replicate, [slices, REPLICATES]."""
    if class_name in CURVES:
        curves = model.replicates.sums["curve"][:many]
        return np.stack([_areas(curve) for curve in curves])
    if class_name in RANKS:
        return model.ranked.replicates(class_name, many)
    sums = model.replicates.sums["confusion" if class_name in CONFUSION else class_name]
    with np.errstate(invalid="ignore"):
        found: Floats = values_of(class_name, sums[:many])
    return found


def _areas(curve: Floats) -> Floats:
    """Return the area under each replicate's curve, from the number of positives above each negative."""
    positives, negatives = np.moveaxis(curve.astype(np.float64).reshape(COARSE_BUCKETS, 2, REPLICATES), 1, 0)
    pairs = positives.sum(0) * negatives.sum(0)
    above = positives[::-1].cumsum(0)[::-1] - positives / 2
    found: Floats = np.full(REPLICATES, np.nan)
    np.divide((above * negatives).sum(0), pairs, out=found, where=pairs > 0)
    return found


def _errors(values: Floats, least: Floats) -> Floats:
    """Return the standard deviation of each slice's replicates, at least `least`.

    If fewer than half of the replicates are numbers, return `least`, or NaN if `least` is 0 or no replicate
    is a number: about 40 of 64 replicates draw the only group of a slice, or its only positive, but in some
    slices few do.
    """
    known = np.isfinite(values)
    many = known.sum(1)
    enough = many >= REPLICATES // 2
    count = np.maximum(many, 2)
    middle = np.where(known, values, 0).sum(1) / count
    apart = np.where(known, values, middle[:, None]) - middle[:, None]
    few = np.where((many > 0) & (least > 0), least, np.nan)
    found: Floats = np.where(enough, np.maximum(np.sqrt((apart**2).sum(1) / (count - 1)), least), few)
    return found


def _counted(class_name: str, model: ModelTally, tally: Tally, many: int) -> Floats:
    """Return the number of rows behind each slice's share or area, or of groups behind its ranks, at least 1;
    infinity for other metrics. For a count, return how many rows of equal weight one unit of it stands for: 1
    if every row weighs 1."""
    if class_name in CONFUSION:
        confusion = CONFUSION[class_name]
        if confusion.whole is not None:
            return np.maximum(_kish(*_cells(confusion.whole, model, many)), 1.0)
        weights, squares = _cells(confusion.deciding, model, many)
        of_a_unit = tally.effective_rows_per_weight[:many]
        np.divide(weights, squares, out=of_a_unit, where=squares > 0)
        return of_a_unit
    if class_name in CURVES | RANKS | _ACCURACIES:
        return np.maximum(_deciding(class_name, model, tally, many), 1.0)
    return np.full(many, np.inf)


def _deciding(class_name: str, model: ModelTally, tally: Tally, many: int) -> Floats:
    """Return the number of rows that each slice's value depends on: for an area the rows of its rarer class,
    for a recall the positives. If weights differ, it is the number of rows of equal weight that tell as
    much."""
    if class_name in CURVES:
        weights = np.array([model.curve.of_slice(place)[1].sum(0) for place in range(many)])
        rarer: Floats = _kish(weights, _squares("curve", weights, model, many)).min(1)
        return rarer
    if class_name in RANKS:
        return model.ranked.groups(class_name, len(tally.keys))[:many]
    if class_name in CONFUSION:
        return _kish(*_cells(CONFUSION[class_name].deciding, model, many))
    sums = model.sums[class_name][:, 1] if class_name in _ACCURACIES else tally.weights[:, 0]
    rows: Floats = sums[:many] * tally.effective_rows_per_weight[:many]
    return rows


def _cells(counted: Cells, model: ModelTally, many: int) -> tuple[Floats, Floats]:
    """Return the sums of the weights, and of the squared weights, of the rows in some cells, by slice."""
    weights = model.sums["confusion"][:many]
    return weights @ np.array(counted), _squares("confusion", weights, model, many) @ np.array(counted)


def _squares(name: str, weights: Floats, model: ModelTally, many: int) -> Floats:
    """Return the sums of squared weights; if every row weighs 1, the sums of the weights."""
    found = model.sums.get(squares_of(name))
    return weights if found is None else found[:many]


def _kish(weights: Floats, squares: Floats) -> Floats:
    """Return how many rows of equal weight tell as much (L. Kish, Survey Sampling, 1965)."""
    per_weight: Floats = np.divide(weights, squares, out=np.zeros_like(weights), where=squares > 0)
    return weights * per_weight
