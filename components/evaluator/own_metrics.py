"""Custom metrics, which TensorFlow Model Analysis computes in addition to our pass over the rows. Pure.

Their formulas are unknown, so TFX's own executor computes them, and only them, row by row.
"""

import errno
import importlib
import itertools
import json
import re
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.metrics.definitions import METRICS, of_output
from slipway.components.model_gate.trivial_scores import LABEL_PREFIX

Result = tuple[str, str, str]
"""The names of a model, one of its outputs and a metric; the first two may be empty."""

EvalConfig = Any  # TFMA's message, which this module does not import

_OF_THE_GATE = "slipway.components.model_gate."
_OF_A_MODULE = {"class_name", "module", "config"}
_LIBRARIES = ("keras", "tensorflow", "tensorflow_model_analysis", "tf_keras")
# Names of the row count and of the metric that holds the predictions beside the labels.
TAKEN_NAMES = ("example_count", "answers")
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in ')
_STEP = re.compile(r" \[while running '[^']*'\]$")
_MOST_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class OwnMetric:
    """A metric class that a configuration names by its module.

    Attributes:
        name: of the result; empty if the class itself chooses it.
        module, class_name: where to import the class from.
        settings: arguments of the constructor, including the name.
        output: the models' output that it measures; empty if they have only one.
        models: names of the models that it measures; one empty name if there is only one model.
    """

    name: str
    module: str
    class_name: str
    settings: Mapping[str, object]
    output: str = ""
    models: tuple[str, ...] = ("",)

    def __str__(self) -> str:
        return f"the metric {self.full_name} ({self.module}.{self.class_name})"

    @property
    def full_name(self) -> str:
        """The metric's name, prefixed with that of its output."""
        return of_output(self.output, self.name or self.class_name)

    @property
    def is_of_a_library(self) -> bool:
        """Whether the class comes with TensorFlow, Keras or TensorFlow Model Analysis."""
        return self.module.partition(".")[0] in _LIBRARIES


def apart(config: EvalConfig) -> tuple[EvalConfig, EvalConfig | None]:
    """Split a configuration into one without custom metrics and one of only those; None if there are none.

    A metric with a threshold stays with the rest: its validation results go to other files.
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
    """Return the metrics that a configuration names by their module, except the gate's, one for each output.

    Args:
        config: with the names that its models have in the results.
    """
    models = [model.name for model in config.model_specs]
    found = []
    for spec in config.metrics_specs:
        # TensorFlow Model Analysis leaves out the name of a model that is the only one.
        of_models = tuple(spec.model_names or models) if len(models) > 1 else ("",)
        for metric, output in itertools.product(spec.metrics, spec.output_names or [""]):
            if metric.module and not metric.module.startswith(_OF_THE_GATE):
                settings = json.loads(metric.config or "{}")
                name = settings.get("name", "")
                found.append(OwnMetric(name, metric.module, metric.class_name, settings, output, of_models))
    return found


def weighed_alike(weights: Any, config: EvalConfig) -> Any:
    """Return the weights of a batch, those of the baseline as the candidate's: only the models are to differ.

    The baseline may have been trained before there were weights, or with others.

    Args:
        weights: by the name of the model, as TensorFlow Model Analysis finds them in what each model's own
            transform gives; anything else, as of one model, is returned as it is.
        config: with the names that its models have there.
    """
    names = {model.is_baseline: model.name for model in config.model_specs}
    is_pair = len(config.model_specs) == len(names) == 2
    if not is_pair or not isinstance(weights, Mapping) or names[False] not in weights:
        return weights
    return {**weights, names[True]: weights[names[False]]}


def require_metrics(
    metrics: Sequence[OwnMetric], *, kinds: tuple[type, ...], taken: Mapping[str, type]
) -> None:
    """Instantiate each metric once, so that a broken one fails before any row is read.

    Args:
        kinds: the base classes, one of which a metric must be derived from.
        taken: TensorFlow Model Analysis' own classes, by the name under which it looks them up.

    Raises:
        ComponentError: a class cannot be imported or constructed, is not a metric, or has the name of one of
            TensorFlow Model Analysis' own.
    """
    for metric in metrics:
        found = _imported(metric)
        if not isinstance(found, type) or not issubclass(found, kinds):
            wanted = " or ".join(map(_public, kinds))
            is_keras = isinstance(found, type) and any(
                base.__module__.startswith("keras.") for base in found.__mro__
            )
            of_keras = (
                "one of Keras 3, which TensorFlow Model Analysis does not take" if is_keras else "no metric"
            )
            raise ComponentError(f"{metric} is {of_keras}", hint=f"derive the class from {wanted}")
        if taken.get(metric.class_name, found) is not found:
            raise ComponentError(
                f"{metric} has the name of one of TensorFlow Model Analysis, which would be used instead",
                hint="give the class another name",
            )
        try:
            found.from_config(dict(metric.settings))  # type: ignore[attr-defined]  # of all kinds
        except Exception as error:  # raised by the user's code
            raise ComponentError(
                f"{metric} cannot be constructed with {_shown(metric.settings)}: {_in_a_line(error)}",
                hint="its __init__ must take these and pass the name on",
            ) from error


def _public(kind: type) -> str:
    """Return the public path of a kind of metric, as users import it."""
    folder = "losses" if kind.__name__ == "Loss" else "metrics"
    return f"{kind.__module__.partition('.')[0]}.{folder}.{kind.__name__}"


def _imported(metric: OwnMetric) -> Any:
    try:
        module = importlib.import_module(metric.module)
    except Exception as error:  # raised by the user's code
        raise ComponentError(f"{metric} cannot be imported: {_in_a_line(error)}") from error
    if not hasattr(module, metric.class_name):
        raise ComponentError(f"{metric} does not exist: {metric.module} has no {metric.class_name}")
    return getattr(module, metric.class_name)


def failure(metrics: Sequence[OwnMetric], error: Exception) -> ComponentError:
    """Describe an error of a metric: which metric, where in its code, and why.

    Args:
        error: the error as Beam raises it, with the traceback of another process as its text.

    Returns:
        An error that names the metrics of the module that raised it, or TFX's executor if none of their
        modules did.
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


def unsupported_failure(reason: Exception, error: BaseException) -> ComponentError:
    """Describe an error of TFX's own executor in an evaluation that ours does not support.

    Args:
        reason: says what ours does not support, as a clause; it was being handled when the error was raised.
        error: the error as Beam raises it, whose message holds the rows; the first error of its chain says
            what was wrong with them.
    """
    before: BaseException | None = error
    while before is not None and before is not reason:
        error, before = before, before.__cause__ or before.__context__
    lines = "".join(traceback.format_exception(error)).splitlines()
    told = next(line for line in reversed(lines) if line.strip())
    return ComponentError(
        f"TFX's own executor failed at what ours does not support: {reason}: {_cut(told)}",
        hint="check evaluate.metrics and transform.label against what the model answers; the node's log "
        "holds the traceback",
    )


def _either(metrics: Sequence[OwnMetric]) -> str:
    return " or ".join(map(str, metrics))


def _found_in(lines: Sequence[str], metrics: Sequence[OwnMetric]) -> Iterator[tuple[str, str, str]]:
    """Yield, for the first traceback through a metric's module: the metrics of that module, the innermost
    frame in it, and the exception. A frame does not tell which of several metrics of a module failed."""
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


def require_results(metrics: Sequence[OwnMetric], found: Collection[Result]) -> None:
    """Check that each metric has a result under its name for every model.

    Raises:
        ComponentError: a metric has none.
    """
    for metric in metrics:
        lacking = [each for each in metric.models if (each, metric.output, metric.name) not in found]
        if metric.name and lacking:
            there = ", ".join(sorted({of_output(output, name) for _, output, name in found})) or "nothing"
            # A result that names no model is the candidate's.
            of_some = f" for the model {lacking[0]}" if lacking[0] and found else ""
            raise ComponentError(
                f"{metric} gives no result of that name{of_some}; there is {there}",
                hint="use the name that the class is made with in the MetricKey of its result, and the "
                "model_name and the output_name that its computations are asked for",
            )


def require_new_names(
    metrics: Sequence[OwnMetric], found: Collection[Result], *, taken: Collection[Result]
) -> None:
    """Check that no custom metric gives a result under a name that is in use.

    Args:
        taken: the results that the evaluation has already.

    Raises:
        ComponentError: a result has the name of another, or one that means something else to the gate.
    """
    for model, output, name in sorted(found):
        is_known = name in METRICS or name in TAKEN_NAMES or name.startswith(LABEL_PREFIX)
        if is_known or (model, output, name) in taken:
            raise ComponentError(
                f"{_either(metrics)} gives a result called {of_output(output, name)}, which is the name of "
                "another metric",
                hint="give the MetricKey of each result a name that the class is made with",
            )


def _in_a_line(error: Exception) -> str:
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return _cut(": ".join(filter(None, (type(error).__name__, first.strip()))))


def _cut(line: str) -> str:
    return _STEP.sub("", line.strip())[:_MOST_CHARACTERS]


def _shown(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items()) or "no settings"
