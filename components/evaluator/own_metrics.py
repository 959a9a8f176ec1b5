"""A user's own metrics, which TensorFlow Model Analysis computes beside our pass over the rows. Pure.

What they compute is unknown, so they go through TFX's own executor, row by row; only they do.
"""

import errno
import importlib
import json
import re
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.components.errors import ComponentError

EvalConfig = Any  # TFMA's message, which this module does not import

_OF_THE_GATE = "slipway.components.model_gate."
_OF_A_MODULE = {"class_name", "module", "config"}
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in ')
_STEP = re.compile(r" \[while running '[^']*'\]$")
_MOST_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class OwnMetric:
    """A class that a configuration names by its module.

    Attributes:
        name: of its result; empty where the class itself decides.
        module, class_name: where it is.
        settings: the arguments that it is made with, its name among them.
    """

    name: str
    module: str
    class_name: str
    settings: Mapping[str, Any]

    def __str__(self) -> str:
        return f"the metric {self.name or self.class_name} ({self.module}.{self.class_name})"


def apart(config: EvalConfig) -> tuple[EvalConfig, EvalConfig | None]:
    """A configuration without a user's own metrics, and one of only these; None if there are none.

    A metric with a threshold is not taken for one's own: what it judges is written in other files.
    """
    rest, own = type(config)(), type(config)()
    for each, kept in ((rest, False), (own, True)):
        each.CopyFrom(config)
        del each.metrics_specs[:]
        for spec in config.metrics_specs:
            metrics = [metric for metric in spec.metrics if _is_own(metric) is kept]
            if metrics or not (kept or spec.metrics):
                added = each.metrics_specs.add()
                added.CopyFrom(spec)
                del added.metrics[:]
                added.metrics.extend(metrics)
    return (rest, own) if own.metrics_specs else (config, None)


def _is_own(metric: Any) -> bool:
    given = {field.name for field, _ in metric.ListFields()}
    return bool(metric.module) and not metric.module.startswith(_OF_THE_GATE) and given <= _OF_A_MODULE


def own_metrics(config: EvalConfig) -> list[OwnMetric]:
    """The metrics of a configuration that `apart` made, each once."""
    found = []
    for spec in config.metrics_specs:
        for metric in spec.metrics:
            settings = json.loads(metric.config or "{}")
            found.append(OwnMetric(settings.get("name", ""), metric.module, metric.class_name, settings))
    return found


def require_metrics(
    metrics: Sequence[OwnMetric], *, kinds: tuple[type, ...], taken: Mapping[str, type]
) -> None:
    """Makes each once, so that what cannot be made is told before a row is read.

    Args:
        kinds: the classes that a metric is derived from.
        taken: the names by which TensorFlow Model Analysis looks for its own classes, with these.

    Raises:
        ComponentError: one cannot be imported or made, or is no metric.
    """
    for metric in metrics:
        found = _imported(metric)
        if not isinstance(found, type) or not issubclass(found, kinds):
            wanted = " or ".join(
                f"{kind.__module__.partition('.')[0]}.metrics.{kind.__name__}" for kind in kinds
            )
            is_keras = isinstance(found, type) and any(
                base.__module__.startswith("keras.") for base in found.__mro__
            )
            of_keras = (
                "one of Keras 3, which TensorFlow Model Analysis does not take" if is_keras else "no metric"
            )
            raise ComponentError(f"{metric} is {of_keras}", hint=f"derive the class from {wanted}")
        if taken.get(metric.class_name, found) is not found:
            raise ComponentError(
                f"{metric} is called as one of TensorFlow Model Analysis, which would be taken instead",
                hint="give the class another name",
            )
        try:
            found.from_config(dict(metric.settings))  # type: ignore[attr-defined]  # of both kinds
        except Exception as error:  # of the user's code
            raise ComponentError(
                f"{metric} cannot be made with {_shown(metric.settings)}: {_in_a_line(error)}",
                hint="its __init__ must take these and pass the name on",
            ) from error


def _imported(metric: OwnMetric) -> Any:
    try:
        module = importlib.import_module(metric.module)
    except Exception as error:  # of the user's code
        raise ComponentError(f"{metric} cannot be imported: {_in_a_line(error)}") from error
    if not hasattr(module, metric.class_name):
        raise ComponentError(f"{metric} is not there: {metric.module} has no {metric.class_name}")
    return getattr(module, metric.class_name)


def failure(metrics: Sequence[OwnMetric], error: Exception) -> ComponentError:
    """An error while they were computed, in words: which one, where in its code, and why.

    Args:
        metrics: those that were computed.
        error: as Beam passes it on, with the traceback of another process as its text.

    Returns:
        What names the metrics of the module that raised, or TFX's executor where none of theirs did.
    """
    lines = "".join(traceback.format_exception(error)).splitlines()
    for named, place, reason in _found_in(lines, metrics):
        return ComponentError(
            f"{named} failed at {place}: {reason}", hint="correct the metric, and run again"
        )
    reason = next(line for line in reversed(lines) if line.strip())
    hint = "the node's log holds the traceback"
    if isinstance(error, MemoryError):
        hint = "free memory, or run fewer nodes at once (--jobs 1): these metrics are computed row by row"
    elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
        hint = "make room on the disk"
    return ComponentError(
        f"TFX's own executor failed while it computed {_either(metrics)}: {_cut(reason)}", hint=hint
    )


def _either(metrics: Sequence[OwnMetric]) -> str:
    return " or ".join(map(str, metrics))


def _found_in(lines: Sequence[str], metrics: Sequence[OwnMetric]) -> Iterator[tuple[str, str, str]]:
    """The metrics of one module, the innermost place in it in the first traceback that has one, and what was
    raised. Which of several metrics of a module it was, a frame does not tell."""
    files: dict[str | None, list[OwnMetric]] = {}
    for each in metrics:
        files.setdefault(getattr(importlib.import_module(each.module), "__file__", None), []).append(each)
    place: tuple[str, str] | None = None
    for line in lines:
        if frame := _FRAME.match(line):
            if there := files.get(frame["file"]):
                place = _either(there), f"{Path(frame['file']).name}:{frame['line']}"
        elif place and line and not line[0].isspace():
            yield *place, _cut(line)
            return


def require_results(metrics: Sequence[OwnMetric], found: Collection[str]) -> None:
    """Checks that each gave something by its name.

    Args:
        found: the names of all results.

    Raises:
        ComponentError: one did not.
    """
    for metric in metrics:
        if metric.name and metric.name not in found:
            there = ", ".join(sorted(found)) or "nothing"
            raise ComponentError(
                f"{metric} gives no result of that name; there is {there}",
                hint="use the name that the class is made with in the MetricKey of its result",
            )


def _in_a_line(error: Exception) -> str:
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return _cut(": ".join(filter(None, (type(error).__name__, first.strip()))))


def _cut(line: str) -> str:
    return _STEP.sub("", line.strip())[:_MOST_CHARACTERS]


def _shown(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items()) or "no settings"
