"""Computes the metrics' values from the counts, as TensorFlow Model Analysis defines them. Pure."""

import functools
import json
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from slipway.components.errors import ComponentError
from slipway.components.evaluator.grouped_sums import Floats
from slipway.components.evaluator.model_tally import BUCKETS, OF_CLASSES, ModelTally
from slipway.components.evaluator.request import ANSWERS_NAME, QUANTILES, RANKS, Request
from slipway.components.evaluator.slices import SliceKey
from slipway.components.evaluator.tally import Tally
from slipway.components.metrics.definitions import BY_CLASS, CONFUSION, CURVES, Cells, of_output
from slipway.components.metrics.row_values import HINGES, MEANS
from slipway.components.model_gate.prediction_counts import Group, PredictionCounts
from slipway.components.model_gate.trivial_scores import (
    LABEL_PREFIX,
    LabelStatistics,
    constant_area,
    constant_precision,
    labels_of_vectors,
    of_entries,
)

# Number of thresholds of the AUC, and TensorFlow Model Analysis' shift of them
# (`binary_confusion_matrices.py`).
_THRESHOLDS = 10_000
_EPSILON = 1e-7

# By metric class, the field of `LabelStatistics` that holds the expected value of a random order.
_RANDOM = {each.class_name: str(each.trivial) for each in BY_CLASS.values() if each.outputs == "ranks"}
# Metric classes that divide by the number of rows of one kind, or of groups, which may be 0.
_MAY_LACK = RANKS | {name for name, each in BY_CLASS.items() if each.confusion or each.skips_zeros}

Name = tuple[str, str]
"""The names of a model and a metric."""
Values = dict[Name, float | bytes]


def results(request: Request, tally: Tally) -> dict[SliceKey, Values]:
    """Return the values of all metrics, by slice.

    Raises:
        ComponentError: a metric cannot be computed from a model's predictions, or the baseline has another
            label.
    """
    for asked, model in zip(request.models, tally.models, strict=True):
        if model.lost:
            metrics = request.metrics_of(asked.output)
            lost = next(name for name, class_name in metrics.items() if class_name in CURVES | RANKS)
            hint = "check what the model divides by or takes the logarithm of"
            raise ComponentError(
                f"the {asked.name or 'candidate'} model answers NaN for {model.lost:,} of {tally.total:,} "
                f"rows of the eval split, so {lost} cannot be computed",
                hint="" if asked.is_baseline else hint,  # the engine adds a hint for a baseline
            )
    if request.weight and tally.total and not tally.weights[:, 0].any():
        raise ComponentError(
            f"the weight {request.weight} is 0 in every row of the eval split",
            hint="check transform.weight, and what preprocessing_fn returns for it",
        )
    for asked in request.models:
        if asked.is_baseline:
            tally.agreements[asked.output].require(asked.label)
    for labels in (*tally.labels.values(), *tally.numbers.values(), *tally.entries.values()):
        labels.compact()
    for model in tally.models:
        for sums in (model.curve, model.answers, model.cells):
            sums.compact()
    if not tally.keys:
        return {}
    computed = {
        (asked.name, name): _of_slices(class_name, model, len(tally.keys))
        for asked, model in zip(request.models, tally.models, strict=True)
        for name, class_name in request.metrics_of(asked.output).items()
    }
    computed |= {
        (model, name): _means(request, tally, model, name, computed)
        for model in dict.fromkeys(asked.name for asked in request.models)
        for name in request.averages
    }
    chance = _of_chance(request, tally)
    return {key: _of_slice(request, tally, place, computed, chance) for place, key in enumerate(tally.keys)}


def _of_chance(request: Request, tally: Tally) -> dict[str, dict[str, Floats]]:
    """Return what ranks and areas have without knowledge, by output, field of `LabelStatistics`, and slice;
    NaN where there is none."""
    return {
        asked.output: {
            _RANDOM[class_name]: model.ranked.means(class_name, len(tally.keys), by_chance=True)
            for class_name in request.metrics_of(asked.output).values()
            if class_name in _RANDOM
        }
        | _of_constants(model, tally)
        for asked, model in zip(request.models, tally.models, strict=True)
        if not asked.is_baseline
    }


def _of_constants(model: ModelTally, tally: Tally) -> dict[str, Floats]:
    if OF_CLASSES not in model.sums:
        return {}
    each = list(zip(model.sums[OF_CLASSES].tolist(), tally.weights[:, 0].tolist(), strict=True))
    return {
        "constant_auc": np.array([constant_area(positives, weight) for positives, weight in each]),
        "constant_precision": np.array([constant_precision(positives, weight) for positives, weight in each]),
    }


def _means(
    request: Request, tally: Tally, model: str, name: str, computed: Mapping[Name, Sequence[float]]
) -> list[float]:
    """Return the mean of a metric over a model's outputs, for each slice.

    An output is left out if the slice has nothing to count for it, such as a recall without positives, ranks
    without a label above 0, or an area over labels of one class; the mean is NaN if none is left. Any other
    NaN comes from the model's answers, and makes the mean NaN, too.
    """
    heads = [
        (asked, counted)
        for asked, counted in zip(request.models, tally.models, strict=True)
        if asked.name == model
    ]
    values = np.array([computed[model, of_output(asked.output, name)] for asked, _ in heads])
    class_name = request.averages[name]
    if class_name in CURVES:
        of_both = [[counted.has_both(place) for place in range(len(tally.keys))] for _, counted in heads]
        values = np.where(of_both, values, np.nan)
    means = mean_of_known(values) if class_name in CURVES | _MAY_LACK else values.mean(0)
    found: list[float] = means.tolist()
    return found


def mean_of_known(values: Floats) -> Floats:
    """Return the mean over the first axis, ignoring NaN; NaN where all values are."""
    known = ~np.isnan(values)
    return _share(np.where(known, values, 0.0).sum(0), known.sum(0).astype(np.float64))


def _of_slice(
    request: Request,
    tally: Tally,
    place: int,
    computed: Mapping[Name, Sequence[float]],
    chance: Mapping[str, Mapping[str, Floats]],
) -> Values:
    values: Values = {}
    for asked, model in zip(request.models, tally.models, strict=True):
        if request.example_count is not None:
            values[asked.name, request.example_count] = float(tally.rows[place])
        for name in request.metrics_of(asked.output):
            values[asked.name, name] = computed[asked.name, name][place]
        for name in request.averages:
            values[asked.name, name] = computed[asked.name, name][place]
        if request.answers and (told := _prediction_counts(model, place).to_json()):
            name = of_output(asked.output, ANSWERS_NAME)
            values[asked.name, name] = json.dumps(told, separators=(",", ":")).encode()
    answers = {
        asked.output: model.outputs
        for asked, model in zip(request.models, tally.models, strict=True)
        if not asked.is_baseline
    }
    for output in tally.labels if request.label_statistics else ():
        weights, squares, counts = _labels(tally, output, place)
        if any(weights.values()):
            found = LabelStatistics.of_counts(
                weights,
                squares=squares if request.weight else None,
                count=math.fsum(counts.values()),
                quantiles=request.quantiles,
                has_answer_for_each=answers.get(output, 1) > 1,
            )
            ranked = {field: float(of[place]) for field, of in chance.get(output, {}).items()}
            known = {**found.known(), **{field: value for field, value in ranked.items() if value == value}}
            if (width := tally.widths[output]) > 1:
                known |= {"entries": float(width)} | (
                    _of_entries(tally, output) if tally.keys[place] == () else {}
                )
            for field, value in known.items():
                values[request.models[0].name, of_output(output, LABEL_PREFIX + field)] = value
    return values


def _of_entries(tally: Tally, output: str) -> dict[str, float]:
    entries = (tally.entries[output].of_slice(place) for place in range(tally.widths[output]))
    return of_entries([dict(zip(v.tolist(), sums[:, 0].tolist(), strict=True)) for v, sums in entries])


def _labels(tally: Tally, output: str, place: int) -> Iterator[dict[float, float]]:
    """Yield three dicts by label for one slice: weights, squared weights, and number of rows."""
    width, others = tally.widths.get(output, 1), tally.numbers[output]
    by_class, by_number = tally.labels[output].of_slice(place), others.of_slice(place)
    for part in range(3):
        labels, numbers = (
            dict(zip(values.tolist(), sums[:, part].tolist(), strict=True))
            for values, sums in (by_class, by_number)
        )
        if width > 1:
            are_classes = not others.values.size
            labels = labels_of_vectors(labels, numbers, width=width, are_classes=are_classes)
        yield labels


def _of_slices(class_name: str, model: ModelTally, slices: int) -> list[float]:
    if class_name in CURVES:
        return [area(*model.curve.of_slice(place)) for place in range(slices)]
    if class_name in RANKS:
        ranks: list[float] = model.ranked.means(class_name, slices).tolist()
        return ranks
    sums = model.sums["confusion" if class_name in CONFUSION else class_name]
    found: list[float] = values_of(class_name, sums[:, :, None])[:, 0].tolist()
    return found


def values_of(class_name: str, sums: Floats) -> Floats:
    """Return a metric's values, NaN where it has none.

    Args:
        class_name: a metric class that is not a curve.
        sums: [slices, parts, samples], the sums of the terms from `row_values`, for each of several samples
            of the rows.

    Returns:
        [slices, samples].
    """
    parts = np.moveaxis(sums, 1, 0)
    if class_name in CONFUSION:
        counted = CONFUSION[class_name]
        part = _added(parts, counted.part)
        return part if counted.whole is None else _share(part, _added(parts, counted.whole))
    if class_name in HINGES:
        as_they_are, as_signs, others, rows = parts
        has_others = others.any(axis=1, keepdims=True)
        return _share(np.where(has_others, as_they_are, as_signs), rows)
    assert class_name in {*MEANS, *QUANTILES}  # noqa: S101  (the request knows no others)
    found = _share(*parts)
    return np.sqrt(found) if class_name == "RootMeanSquaredError" else found


def area(buckets: Floats, counts: Floats) -> float:
    """Return the area under the ROC curve at the thresholds of TensorFlow Model Analysis: 10,000 from 0 to 1.

    Args:
        buckets: the buckets of the answers that occur, ascending; see `model_tally.BUCKETS`.
        counts: positives and negatives in each bucket.
    """
    steps = _STEPS[buckets.astype(np.int64)]
    at = np.zeros((_THRESHOLDS, 2))
    np.add.at(at, steps, counts)
    above = np.cumsum(at[::-1], axis=0)[::-1]
    totals = above[0].copy()
    above[-1] = 0.0  # nothing lies above the last threshold, which is more than 1
    recall, fall_out = (
        above[:, part] / totals[part] if totals[part] else np.zeros(_THRESHOLDS) for part in (0, 1)
    )
    return float(np.nansum((fall_out[:-1] - fall_out[1:]) * (recall[:-1] + recall[1:]) / 2))


def _steps() -> np.ndarray:
    """Return the threshold at or below each bucket's start, as in `calibration_histogram.rebin`."""
    thresholds = np.array(
        [-_EPSILON, *((i + 1) / (_THRESHOLDS - 1) for i in range(_THRESHOLDS - 2)), 1 + _EPSILON]
    )
    thresholds[1:] += _EPSILON
    starts = np.array([-math.inf, *((place - 1) / BUCKETS for place in range(1, BUCKETS + 1)), math.inf])
    return np.searchsorted(thresholds[1:], starts, side="right")


_STEPS = _steps()


def _share(part: Floats, whole: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.divide(part, whole, out=np.full_like(part, math.nan), where=whole > 0)


def _added(cells: Floats, counted: Cells) -> Floats:
    """The sum of the cells of the confusion, each as often as it counts."""
    return functools.reduce(np.add, [many * each for each, many in zip(cells, counted, strict=True) if many])


def _prediction_counts(model: ModelTally, place: int) -> PredictionCounts:
    not_finite, not_told, not_binary, no_class, outside = model.sums["answers"][place].tolist()
    values, sums = model.answers.of_slice(place)
    groups = {
        answer: Group(int(rows), label, label_squared, total)
        for answer, (rows, label, label_squared, total) in zip(values.tolist(), sums.tolist(), strict=True)
    }
    cells, rows = model.cells.of_slice(place)
    return PredictionCounts(
        groups=groups,
        cells={
            divmod(int(cell), model.outputs): int(many)
            for cell, many in zip(cells.tolist(), rows[:, 0].tolist(), strict=True)
        },
        is_binary=not not_binary,
        is_rounded=place in model.answers.digits,
        not_finite=int(not_finite),
        not_told=int(not_told),
        no_class=int(no_class),
        outside=int(outside),
    )
