"""The model section of a run's report page: gate checks, metrics by slice, serving check, exports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipway.components.model_gate.verdict import OVERALL
from slipway.pipeline.report.artifacts import first_json
from slipway.pipeline.report.page_head import COUNT, interval
from slipway.pipeline.report.predictions import Predictions, predictions
from slipway.pipeline.runs.outcome import read_verdict
from slipway.pipeline.runs.record import Export, RunRecord, VerdictCheck
from slipway.pipeline.runs.verdict_order import SEVERITIES, severity, worst_first
from slipway.pipeline.screen.wording import change_words

_SHOWN_SLICES = 300
_SHOWN_CHECKS = 300

Intervals = Mapping[str, Mapping[str, Sequence[float]]]
"""Slice -> metric -> lower and upper confidence bound."""


@dataclass(frozen=True)
class Check:
    """One check of the model.

    Attributes:
        name: the metric, or what else was measured.
        place: the slice.
        got: the measured value, as text.
        baseline: the value of the last blessed model, as text; may be empty.
        verdict: `FAILED`, `warning` or `passed`.
        note: where to look; empty for a check that passed.
        interval: the confidence interval of `got`, as text; empty if it has none.
    """

    name: str
    place: str
    required: str
    got: str
    baseline: str
    verdict: str
    note: str
    interval: str = ""


@dataclass(frozen=True)
class Slices:
    """Metrics by slice.

    Attributes:
        metrics: the metric columns; the first one determines the order of `rows`.
        rows: (slice, examples, values), worst value of the first metric first, small slices after all
            others; a missing value is None.
        left_out: the number of slices that are not in `rows`.
        min_rows: slices with fewer rows are small; the gate does not judge them.
        small: the names of the small slices in `rows`.
        intervals: slice -> the confidence interval of each of its values, as text; empty for a value without
            one.
        worth: slice -> effective number of rows, for slices in `rows` whose examples have different weights.
    """

    metrics: tuple[str, ...]
    rows: tuple[tuple[str, float | None, tuple[float | None, ...]], ...]
    left_out: int
    min_rows: int
    small: frozenset[str]
    intervals: Mapping[str, tuple[str, ...]]
    worth: Mapping[str, float]


@dataclass(frozen=True)
class Model:
    """The content of the model section.

    Attributes:
        blessed: whether the gate blessed the model; None if no gate ran.
        notes: the gate's warnings, and what it could not judge.
        checks: failed checks first.
        slices: None if the model was evaluated on one slice only.
        references: (name, metrics as text) of each simpler model.
        serving: (name, value) of each measurement of the serving check, as text.
        exports: (kind, size, change) of each converted form of the model, as text.
        predictions: predictions against labels; None if the gate did not count them.
        unbounded: overall metrics without confidence bounds, such as custom metrics.
    """

    blessed: bool | None
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    checks: tuple[Check, ...]
    slices: Slices | None
    references: tuple[tuple[str, str], ...]
    serving: tuple[tuple[str, str], ...]
    exports: tuple[tuple[str, str, str], ...]
    predictions: Predictions | None
    unbounded: tuple[str, ...] = ()

    @property
    def has_intervals(self) -> bool:
        """Whether any check has a confidence interval."""
        return any(check.interval for check in self.checks)


def model(record: RunRecord, names: Sequence[str] = ()) -> Model | None:
    """Return the model section of a run, or None if the run has no records of a model.

    Args:
        names: the names of the classes that the model predicts; see `class_names`.

    Raises:
        OSError, ValueError: a file cannot be read.
    """
    verdict = read_verdict(record)
    served = serving(first_json(record, "schemas.ServingReport", "report.json"))
    exports = tuple(_export(form) for form in record.training.get("exports", ()))
    if not (verdict or served or exports or record.blessed is not None):
        return None
    checks = verdict.get("checks", [])
    references = verdict.get("reference_models") or {}
    return Model(
        blessed=record.blessed,
        reasons=tuple(record.blessing_reasons),
        notes=(*verdict.get("warnings", ()), *verdict.get("notes", ())),
        checks=tuple(
            _check(c, verdict.get("intervals", {})) for c in sorted(checks, key=severity)[:_SHOWN_CHECKS]
        ),
        slices=slices(
            verdict.get("slices", {}),
            [c["metric"] for c in checks],
            checks=checks,
            min_rows=verdict.get("min_slice_rows", 0),
            intervals=verdict.get("intervals", {}),
            worth=verdict.get("telling_rows", {}),
        ),
        references=tuple((name, _numbers(metrics)) for name, metrics in references.items()),
        serving=served,
        exports=exports,
        predictions=predictions(
            verdict.get("answers", {}), names, has_weights=OVERALL in verdict.get("telling_rows", {})
        ),
        unbounded=without_bounds(verdict.get("slices", {}), verdict.get("intervals", {})),
    )


def without_bounds(found: Mapping[str, Mapping[str, float]], intervals: Intervals) -> tuple[str, ...]:
    """Return the overall metrics that have no confidence bounds; empty if no overall metric has any."""
    known = intervals.get(OVERALL, {})
    return tuple(name for name in found.get(OVERALL, {}) if known and name != COUNT and name not in known)


def _check(check: VerdictCheck, intervals: Intervals) -> Check:
    bounds = intervals.get(check.get("slice", ""), {}).get(check["metric"])
    got = (
        check.get("found", "") if check["got"] is None else f"{number(check['got'])} {check.get('unit', '')}"
    )
    return Check(
        name=check["metric"],
        place=check.get("slice", ""),
        required=check["required"],
        got=str(got).strip(),
        baseline=number(check.get("baseline")),
        verdict=SEVERITIES[severity(check)],
        # The note says where to look, which helps only if something is wrong.
        note="" if check["passed"] else check.get("note", ""),
        interval=interval(bounds) if bounds else "",
    )


def slices(
    found: Mapping[str, Mapping[str, float]],
    checked: Sequence[str],
    *,
    checks: Sequence[VerdictCheck] = (),
    min_rows: int = 0,
    intervals: Intervals | None = None,
    worth: Mapping[str, float] | None = None,
) -> Slices | None:
    """Return the slices, ordered from worst to best by the first checked metric; see `worst_first`.

    Args:
        found: slice -> metric -> value; the slice `overall` is skipped.
        checked: the metrics of the checks; other metrics are not shown.
        checks: whose thresholds say which side of a metric of one's own is better.
        min_rows: slices with fewer rows come after the others.
        intervals: slice -> metric -> confidence bounds, where they are known.
        worth: slice -> effective number of rows, where weights make it smaller than the number of rows.
    """
    known = {name for metrics in found.values() for name in metrics}
    metrics = tuple(name for name in dict.fromkeys(checked) if name in known and name != COUNT)
    parts = {name: each for name, each in found.items() if name != OVERALL}
    if not parts or not metrics:
        return None
    ordered, small = worst_first(parts, metrics[0], min_rows=min_rows, checks=checks)
    shown = ordered[:_SHOWN_SLICES]
    rows = tuple(
        (name, found[name].get(COUNT), tuple(found[name].get(metric) for metric in metrics)) for name in shown
    )
    return Slices(
        metrics,
        rows,
        left_out=len(parts) - len(rows),
        min_rows=min_rows,
        small=small.intersection(shown),
        intervals={name: _in_words((intervals or {}).get(name, {}), metrics) for name in shown},
        worth={name: (worth or {})[name] for name in shown if name in (worth or {})},
    )


def _in_words(intervals: Mapping[str, Sequence[float]], metrics: Sequence[str]) -> tuple[str, ...]:
    return tuple(interval(intervals[name]) if name in intervals else "" for name in metrics)


def serving(report: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the name and value of each measurement of the serving check, as text.

    Args:
        report: the check's `report.json`; may be empty.
    """
    rows: list[tuple[str, str]] = []
    if report.get("crash"):
        rows.append(("crash", str(report["crash"])))
    for batch, timed in (report.get("latency") or {}).items():
        told = (
            f"p50 {timed['p50_ms']:.2f} ms, p99 {timed['p99_ms']:.2f} ms, {timed['rows_per_s']:,.0f} rows/s"
        )
        rows.append((f"{batch} {'row' if batch == '1' else 'rows'} per call", told))
    if report.get("load_s") is not None:
        rows.append(("load time", f"{report['load_s']:.2f} s"))
    if report.get("size_bytes") is not None:
        rows.append(("size", f"{report['size_bytes'] / 1000:,.0f} kB"))
    if report.get("memory_bytes"):
        rows.append(("memory", f"{report['memory_bytes'] / 2**20:,.0f} MiB"))
    for name, what in (("parity", "from training"), ("alone", "of single rows"), ("raw", "of raw columns")):
        if report.get(name):
            # An infinite one is text, because JSON has no number for it.
            rows.append((f"largest difference {what}", f"{float(report[name]['largest']):.3g}"))
    rows += [(name, f"{len(report[name])}") for name in ("failed", "refused", "strange") if report.get(name)]
    if report.get("rows") is not None:
        rows.append(("tested with", f"{report['rows']:,} rows of the eval split"))
    return tuple(rows)


def _export(form: Export) -> tuple[str, str, str]:
    return form["kind"], f"{form['size_bytes'] / 1000:,.0f} kB", change_words(form)


def _numbers(metrics: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {number(value)}" for name, value in metrics.items())


def number(value: float | None) -> str:
    """Format a number with four significant digits; None becomes an empty string."""
    return "" if value is None else f"{value:.4g}"
