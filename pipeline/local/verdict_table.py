"""The model gate's verdict as tables for the screen. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.model_gate.metrics import METRICS

# What fits a screen together with the nodes.
_SHOWN_SLICES = 12
SHOWN_CHECKS = 16


def verdict_lines(verdict: Mapping[str, Any]) -> Iterator[str]:
    """A gate's verdict: every check, what could not be judged, then the metrics of the worst slices."""
    checks = verdict.get("checks", [])
    yield from check_table(checks)
    yield from (f"note: {note}" for note in verdict.get("notes", ()))
    for model, metrics in verdict.get("reference_models", {}).items():
        listed = ", ".join(f"{name} {_number(value)}" for name, value in metrics.items())
        yield f"for comparison, {model}: {listed}"
    yield from _slice_table(verdict.get("slices", {}), [c["metric"] for c in checks])


def check_table(checks: Sequence[Mapping[str, Any]], *, limit: int | None = None) -> Iterator[str]:
    """One line a check: what, where, required, got, the baseline's, the verdict. Failed ones first.

    Args:
        checks: as `verdict.json` holds them.
        limit: how many lines at most, without the head; None for all.
    """
    ordered = sorted(checks, key=_gravity)
    shown = ordered if limit is None else ordered[:limit]
    if not shown:
        return
    head = ("check", "slice", "required", "got", "baseline", "verdict")
    rows = [
        (
            c["metric"],
            c.get("slice", ""),
            c["required"],
            _got(c),
            _number(c.get("baseline")),
            ("FAILED", "warning", "passed")[_gravity(c)],
        )
        for c in shown
    ]
    yield from _table(head, rows)
    if len(ordered) > len(shown):
        passed = sum(_gravity(c) == 2 for c in ordered[len(shown) :])
        yield f"and {len(ordered) - len(shown)} more, {passed} of them passed"


def _got(check: Mapping[str, Any]) -> str:
    if check["got"] is None:
        return str(check.get("found", ""))
    return " ".join(filter(None, (_number(check["got"]), check.get("unit", ""))))


def _gravity(check: Mapping[str, Any]) -> int:
    if check["passed"]:
        return 2
    return 0 if check.get("stops", True) else 1


def _slice_table(slices: Mapping[str, Mapping[str, float]], checked: Sequence[str]) -> Iterator[str]:
    found = {name: metrics for name, metrics in slices.items() if name != "overall"}
    known = {metric for each in slices.values() for metric in each}
    metrics = [name for name in dict.fromkeys(checked) if name in known]
    if not found or not metrics:
        return
    known_metric = METRICS.get(metrics[0])
    sign = -1 if known_metric is not None and known_metric.better == "lower" else 1
    worst_first = sorted(found, key=lambda name: sign * found[name].get(metrics[0], sign * math.inf))
    rows = [
        (name, *(_number(found[name].get(metric)) for metric in ("example_count", *metrics)))
        for name in worst_first[:_SHOWN_SLICES]
    ]
    yield from _table((f"slice, by {metrics[0]}", "examples", *metrics), rows)
    if len(found) > len(rows):
        yield f"{len(found) - len(rows)} more slices: see `show --json`, verdict.json of the blessing"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if value != 0 and abs(value) < 1e-3:
        return f"{value:.2g}"
    return f"{value:.4f}".removesuffix(".0000")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
