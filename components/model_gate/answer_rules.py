"""Checks that the candidate was measured, and answers every row of the eval split with a usable number. Pure.

Most metrics do not show it: an answer that is NaN is left out of a mean error, and is no "yes" for an
accuracy. The serving check queries a few hundred rows only.
"""

import math
from collections.abc import Mapping, Sequence

from slipway.components.metrics.definitions import metric_of, output_of, plain_name
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.verdict import OVERALL, Check


def measured_checks(metrics: Sequence[str], slices: Mapping[str, Measured]) -> list[Check]:
    """Return a failed check for each output of which nothing was measured.

    Limits and constants then compare nothing. That is so without rows, where all of them weigh nothing, and
    where no row has a label. An output whose labels are known may have no precision, say, if there is a value
    of another output.

    Args:
        metrics: names in `metrics.METRICS`; none: any value counts.
        slices: by name, including `overall`; a value that is NaN is left out.
    """
    there = {name for at in slices.values() for name in at.metrics}
    overall = slices.get(OVERALL, Measured({}, {}, None))
    is_anything = bool(there & set(metrics or there))
    of_outputs: dict[str, list[str]] = {}
    for name in metrics or sorted(there):
        of_outputs.setdefault(output_of(name), []).append(name)
    return [
        Check(
            metric="evaluation",
            slice=OVERALL,
            required="at least one",
            found=" of ".join(filter(None, ("has no value", " or ".join(names)))),
            note="look at data.split, transform.label, transform.weight and the Evaluator's log",
        )
        for output, names in (of_outputs or {"": []}).items()
        if not there & set(names) and not (is_anything and _has_labels(overall, output))
    ]


def _has_labels(overall: Measured, output: str) -> bool:
    is_mean = not output and bool(overall.labels_of_outputs)
    return is_mean or overall.of_output(output).labels is not None


def finite_checks(metrics: Sequence[str], overall: Measured) -> list[Check]:
    """Return a failed check for each metric that is infinite, as all errors are where one label is.

    Nothing is then known of the labels, so no constant answer is compared with it.

    Args:
        metrics: names in `metrics.METRICS`.
    """
    return [
        Check(
            metric=name,
            slice=OVERALL,
            required="a finite value",
            found=f"is {overall.metrics[name]:g}",
            note="a label or an answer is infinite, or has no logarithm: check what preprocessing_fn makes "
            "of the label, and what the model answers",
        )
        for name in metrics
        if math.isinf(overall.metrics.get(name, 0.0))
    ]


def answer_checks(not_finite: Mapping[str, int], rows: float) -> list[Check]:
    """Return a failed check for each output with answers that are NaN or infinite.

    Args:
        not_finite: by output, the number of rows with such an answer; the only output has the name "".
        rows: rows of the eval split.
    """
    return [
        Check(
            metric=f"output {output}" if output else "model",
            slice=OVERALL,
            required="a number for every row",
            found=f"answers NaN or infinity to {many:,} of {rows:,.0f} rows",
            note="check what the model divides by or takes the logarithm of",
        )
        for output, many in sorted(not_finite.items())
        if many
    ]


def probability_checks(metrics: Sequence[str], outside: Mapping[str, int], rows: float) -> list[Check]:
    """Return a failed check for each output with answers below 0 or above 1 and metrics of probabilities.

    Such answers are logits: the model's last layer has no sigmoid or softmax. An accuracy then takes a logit
    above one half for a yes, an area takes all logits above 1 for equal, and clients take them for
    probabilities.

    Args:
        metrics: names in `metrics.METRICS`.
        outside: by output, the number of rows with such an answer; the only output has the name "".
        rows: rows of the eval split.
    """
    of_outputs: dict[str, list[str]] = {}
    for name in metrics:
        if metric_of(name).takes_probabilities:
            of_outputs.setdefault(output_of(name), []).append(plain_name(name))
    return [
        Check(
            metric=f"output {output}" if output else "model",
            slice=OVERALL,
            required=f"probabilities, 0 to 1, for {', '.join(of_outputs[output])}",
            found=f"answers below 0 or above 1 to {many:,} of {rows:,.0f} rows",
            note="let its last layer end in a sigmoid or a softmax, with a loss without from_logits=True; or "
            "name metrics of numbers",
        )
        for output, many in sorted(outside.items())
        if many and output in of_outputs
    ]


def fit_checks(metrics: Sequence[str], kinds: Mapping[str, str], overall: Measured) -> list[Check]:
    """Return a failed check for each metric of another number of answers than a row has.

    The libraries compute nonsense there without a word: `categorical_accuracy` of one number is always 1. The
    serving check knows the model's outputs better; this is for runs without it.

    Args:
        metrics: names in `metrics.METRICS`.
        kinds: by output, the `kind` of the counted answers, see `PlainCounts`; an output whose answers fit no
            form is not among them, and is not judged.
        overall: whose labels tell how many numbers each has.
    """
    return [
        Check(
            metric=f"metric {name}",
            slice="",
            required=metric_of(name).needed_outputs(entries=overall.entries_of(name)),
            found=f"is of {'several outputs' if kinds[output_of(name)] == 'classes' else 'one output'}",
            note="this metric says nothing about such a model; choose another",
        )
        for name in metrics
        if output_of(name) in kinds and not _fits(name, kinds[output_of(name)], overall.entries_of(name))
    ]


def _fits(metric: str, kind: str, entries: int) -> bool:
    # A label of several numbers has as many as the answer; of one that is a code, their number is not known.
    return metric_of(metric).fits(max(entries, 2) if kind == "classes" else 1, entries=entries)


def quantile_checks(metrics: Sequence[str], overall: Measured) -> list[Check]:
    """Return a warning for each `quantile_crossing` that is not 0; only a threshold can stop the model.

    Args:
        metrics: names in `definitions.METRICS`, with or without an output's.
    """
    return [
        Check(
            metric=name,
            slice=OVERALL,
            required="0: no lower quantile above a higher one",
            got=overall.metrics[name],
            stops=False,
            note="slipway.components.trainer.models.quantiles.rising makes answers that cannot cross",
        )
        for name in metrics
        if plain_name(name) == "quantile_crossing" and overall.metrics.get(name, 0.0) > 0
    ]
