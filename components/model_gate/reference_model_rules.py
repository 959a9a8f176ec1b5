"""Checks whether the network beats the reference models. Pure."""

from collections.abc import Mapping, Sequence

from slipway.components.metrics.definitions import metric_of
from slipway.components.model_gate.verdict import OVERALL, Check


def reference_checks(
    references: Mapping[str, Mapping[str, float]], metrics: Mapping[str, float], asked: Sequence[str]
) -> list[Check]:
    """Compare the network with each reference model.

    The metric is the first one that both have and whose better side is known; without any there is no check.
    The checks only warn: a network may be wanted for other reasons than its score.

    Args:
        references: model -> metric -> value.
        asked: the workload's metrics, the most important first.
    """
    checks = []
    for model, scores in references.items():
        name = next(
            (each for each in asked if metric_of(each).better and each in metrics and each in scores), None
        )
        if name is None:
            continue
        metric = metric_of(name)
        got, theirs = metrics[name], scores[name]
        checks.append(
            Check(
                metric=f"{name} against {model}",
                slice=OVERALL,
                required=f"{'above' if metric.better == 'higher' else 'below'} {theirs:.4g}",
                got=got,
                passed=metric.is_better(got, than=theirs),
                stops=False,
                note=f"the model does not earn its cost: {model} does "
                f"{'as well' if got == theirs else 'better'}",
            )
        )
    return checks
