"""Checks the measurements of the served model against the workload's limits. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import NotRequired, Self, TypedDict

from slipway.components.counted_words import counted, first_of
from slipway.components.metrics.definitions import metric_of, output_of
from slipway.components.model_gate.trivial_rules import NO_NAMES, ClassNames
from slipway.components.model_gate.verdict import Check
from slipway.components.setting_fields import setting

NO_ENTRIES: Mapping[str, int] = MappingProxyType({})
_MIB = 2**20
# The most items to name in a reason; the report has them all.
_NAMED = 3


class Failure(TypedDict):
    """A failed stage and its error."""

    stage: str
    error: str


class Refused(TypedDict):
    """A strange row that was refused, in words, and the error."""

    words: str
    error: str


class Apart(TypedDict):
    """The largest difference of answers; `inf` is text, because JSON has no number for it."""

    largest: float | str


class Latency(TypedDict, total=False):
    """The speed for one client."""

    p50_ms: float
    p99_ms: float
    rows_per_s: float


class Served(TypedDict):
    """A signature; its outputs by name as type, shape and the name of the tensor."""

    outputs: dict[str, tuple[str, list[int | None], str]]


class ServingReport(TypedDict):
    """The fields of `report.json` that the gate reads; see `serving_check.check.check_served_model`."""

    crash: str
    failed: list[Failure]
    missing_signatures: list[str]
    wrong_arguments: dict[str, list[str]]
    marked: NotRequired[list[str]]
    rows: int
    perturbed: int
    not_finite_rows: int
    strange: list[str]
    refused: list[Refused]
    outputs: int
    signatures: NotRequired[dict[str, Served]]
    features: dict[str, Apart]
    parity: NotRequired[Apart]
    alone: NotRequired[Apart]
    raw: NotRequired[Apart]
    latency: dict[str, Latency]
    size_bytes: int
    load_s: NotRequired[float]
    memory_bytes: NotRequired[int]


@dataclass(frozen=True)
class ServingLimits:
    """Limits for the exported model in a process with TensorFlow alone; None for no limit."""

    tolerance: float = setting(
        1e-4, "How far an answer may differ from training's: absolute; relative for values above 1.", ge=0
    )
    max_p99_ms: float | None = setting(
        500.0, "Time limit for 99 of 100 requests of one row; null: none.", gt=0
    )
    max_batch_p99_ms: float | None = setting(
        2000.0, "Time limit for 99 of 100 requests of 128 rows; null: none.", gt=0
    )
    min_rows_per_s: float | None = setting(
        None, "Minimum throughput of one client with requests of 128 rows; null: none.", gt=0
    )
    max_load_s: float | None = setting(
        60.0, "Maximum time to load the SavedModel after importing TensorFlow; null: none.", gt=0
    )
    max_size_mb: float | None = setting(2048.0, "Maximum size of the SavedModel in MiB; null: none.", gt=0)
    max_memory_mb: float | None = setting(
        8192.0, "Maximum peak memory of the process in MiB, including TensorFlow; null: none.", gt=0
    )

    @classmethod
    def of(cls, values: Mapping[str, float]) -> Self:
        """Return limits of which a missing one is no limit; a missing tolerance has its default."""
        optional = [each.name for each in fields(cls) if each.name != "tolerance"]
        return cls(**{**dict.fromkeys(optional), **values})  # type: ignore[arg-type]  # None is no limit


def serving_checks(
    report: ServingReport,
    limits: ServingLimits,
    *,
    metrics: Sequence[str] = (),
    entries: Mapping[str, int] = NO_ENTRIES,
    classes: ClassNames = NO_NAMES,
) -> list[Check]:
    """Check that the model can be served, answers every row, and answers as in training.

    Args:
        report: `report.json` of ServingCheck.
        metrics: those of the evaluation, which must fit the number of outputs.
        entries: by metric, how many numbers its label has, if that is not one.
        classes: names of the classes by output, which must fit its numbers; the only output is "".
    """
    failures = {each["stage"]: each["error"] for each in report["failed"]}
    if report["crash"] or "loading" in failures:
        said = f"cannot be loaded: {failures['loading']}" if "loading" in failures else report["crash"]
        checks = [_said("loads and answers", "loads and answers with TensorFlow alone", said)]
        if "loading" in failures or "parity" not in report:
            return checks
    else:
        checks = [_said("loads and answers", "loads and answers with TensorFlow alone", "")]
    checks.append(_said("signatures", "has the promised signatures", _signature_words(report)))
    if "serving_default" in report["missing_signatures"]:
        return checks
    checks += _answer_checks(report, failures)
    checks += _parity_checks(report, failures, limits.tolerance)
    checks += _fit_checks(report, metrics, entries) + _name_checks(report, classes)
    return checks + _speed_checks(report, limits)


def _signature_words(report: ServingReport) -> str:
    wrong = report["wrong_arguments"]
    parts = [f"lacks {', '.join(report['missing_signatures'])}" if report["missing_signatures"] else ""]
    parts += [f"serve_raw {word} {', '.join(wrong[word])}" for word in wrong if wrong[word]]
    return (
        "; ".join(filter(None, parts))
        .replace("serve_raw missing", "serve_raw does not take")
        .replace("serve_raw unexpected", "serve_raw takes, but no request has,")
    )


def _answer_checks(report: ServingReport, failures: Mapping[str, str]) -> list[Check]:
    real = failures.get("real", "")
    if report["not_finite_rows"]:
        real = f"{report['not_finite_rows']} of {report['rows']} answers are NaN or infinite"
    strange = ""
    if report["strange"]:
        strange = f"the answer is NaN or infinite for {first_of(report['strange'], _NAMED)}"
    refused = ""
    if report["refused"]:
        named = first_of([each["words"] for each in report["refused"]], _NAMED)
        refused = f"{named} is refused with {report['refused'][0]['error']}"
    answers = "answers every row with a number"
    return [
        _said(f"{report['rows']} real rows", answers, real),
        _said(f"{report['perturbed']} strange rows", answers, "; ".join(filter(None, (strange, refused)))),
    ]


def _parity_checks(report: ServingReport, failures: Mapping[str, str], tolerance: float) -> list[Check]:
    kinds = (
        ("real", report.get("parity"), "answers as training does", _features_apart(report, tolerance)),
        (
            "alone",
            report.get("alone"),
            "one row answered as in a batch",
            "the transform or the model depends on the batch",
        ),
        ("raw", report.get("raw"), "serve_raw answers as serving_default", _raw_note(report)),
    )
    checks = []
    for stage, difference, name, note in kinds:
        if stage in failures and stage != "real":
            checks.append(_said(name, "an answer", failures[stage]))
        elif difference:
            apart = float(difference["largest"])  # an infinite one is text in JSON
            required = f"at most {tolerance:g} apart"
            checks.append(
                Check(
                    metric=f"serving: {name}",
                    slice="",
                    required=required,
                    got=apart if math.isfinite(apart) else None,
                    passed=apart <= tolerance,
                    found="" if math.isfinite(apart) else "a number in only one of them, or different shapes",
                    note=note,
                )
            )
    if "transform" in failures:
        checks.append(_said("transform_features", "an answer", failures["transform"]))
    return checks


def _raw_note(report: ServingReport) -> str:
    if not (marked := report.get("marked")):
        return "a column is read differently"
    return (
        f'rows hold "", NaN or {-(2**63)} as a value of {first_of(marked, _NAMED)}, which serve_raw takes '
        "for an empty cell: leave such cells empty in the data, or let preprocessing_fn fill empty cells "
        "with that value"
    )


def _features_apart(report: ServingReport, tolerance: float) -> str:
    apart = {n: float(d["largest"]) for n, d in report["features"].items() if float(d["largest"]) > tolerance}
    if not apart:
        return (
            "the transformed features agree, so the cause is the model: weights, or a step that "
            "training skips"
        )
    named = [f"{name} by {value:.3g}" for name, value in apart.items()]
    return f"the transform differs in {first_of(named, _NAMED)}"


def _fit_checks(report: ServingReport, metrics: Sequence[str], entries: Mapping[str, int]) -> list[Check]:
    """Check that metrics fit the outputs: on the wrong number of outputs they silently compute nonsense."""
    widths = {name: _width(report, output_of(name)) for name in metrics}
    wrong = [
        name
        for name, width in widths.items()
        if not metric_of(name).fits(width, entries=entries.get(name, 1))
    ]
    return [
        Check(
            metric=f"metric {name}",
            slice="",
            required=metric_of(name).needed_outputs(entries=entries.get(name, 1)),
            got=float(widths[name]),
            unit="output" if widths[name] == 1 else "outputs",
            note="this metric says nothing about such a model; choose another",
        )
        for name in wrong
    ]


def _name_checks(report: ServingReport, classes: ClassNames) -> list[Check]:
    """Warn of names that answers do not have: which class a number belongs to is then not known."""
    widths = {output: _width(report, output) for output in classes}
    return [
        Check(
            metric=f"transform.classes{f'.{output}' if output else ''}",
            slice="",
            required=f"{max(width, 2)} names for {counted(width, 'number')} per row",
            got=float(len(classes[output])),
            stops=False,
            unit="name" if len(classes[output]) == 1 else "names",
            note="its predictions will have no names",
        )
        for output, width in widths.items()
        if len(classes[output]) != max(width, 2)
    ]


def _width(report: ServingReport, output: str) -> int:
    """Return how many numbers a row's answer has: all of them, or those of one of several outputs; for a mean
    over outputs, those of each."""
    outputs = report.get("signatures", {}).get("serving_default", {"outputs": {}})["outputs"]
    if output in outputs:
        return _numbers(outputs[output][1])
    widths = {_numbers(shape) for _, shape, _ in outputs.values()}
    return widths.pop() if not output and len(outputs) > 1 and len(widths) == 1 else report["outputs"]


def _numbers(shape: Sequence[int | None]) -> int:
    return int(shape[-1] or 1) if len(shape) > 1 else 1


def _speed_checks(report: ServingReport, limits: ServingLimits) -> list[Check]:
    one, batch = (report["latency"].get(rows, Latency()) for rows in ("1", "128"))
    most = [
        ("p99 of 1 row", one.get("p99_ms"), limits.max_p99_ms, "ms"),
        ("p99 of 128 rows", batch.get("p99_ms"), limits.max_batch_p99_ms, "ms"),
        ("load", report.get("load_s"), limits.max_load_s, "s"),
        ("size", report["size_bytes"] / _MIB, limits.max_size_mb, "MiB"),
        ("memory", _mib(report.get("memory_bytes")), limits.max_memory_mb, "MiB"),
    ]
    checks = [
        _measured(name, got, unit, f"at most {limit:g} {unit}", got is not None and got <= limit)
        for name, got, limit, unit in most
        if limit is not None
    ]
    if limits.min_rows_per_s is not None:
        got, limit = batch.get("rows_per_s"), limits.min_rows_per_s
        passed = got is not None and got >= limit
        checks.append(_measured("throughput", got, "rows/s", f"at least {limit:g} rows/s", passed))
    return checks


def _measured(name: str, got: float | None, unit: str, required: str, passed: bool) -> Check:
    found = "" if got is not None else "was not measured"
    return Check(f"serving: {name}", "", required, got, passed=passed, unit=unit, found=found)


def _mib(size_bytes: float | None) -> float | None:
    return None if size_bytes is None else size_bytes / _MIB


def _said(name: str, required: str, found: str) -> Check:
    """Return a check with a result in words: it passes if `found` is empty."""
    return Check(f"serving: {name}", "", required, passed=not found, found=found or "yes")
