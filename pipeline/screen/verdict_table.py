"""Formats the model gate's verdict as tables for the screen. Pure."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from slipway.pipeline.runs.record import Verdict, VerdictCheck
from slipway.pipeline.runs.verdict_order import SEVERITIES, severity, worst_first
from slipway.pipeline.terminal.printable import printable

# The numbers of lines that fit on a screen together with the nodes.
_SHOWN_SLICES = 12
SHOWN_CHECKS = 16
# Cells up to this width, such as numbers, are not folded; a column with longer texts is at least this wide.
_UNFOLDED = 12
_GAP = "  "


def verdict_lines(verdict: Verdict, *, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a gate's verdict: every check, notes, then the metrics of the worst slices.

    Args:
        verdict: the content of `verdict.json`.
        width: the maximum width of the tables, in columns; None for no limit.
    """
    checks = verdict.get("checks", [])
    yield from check_table(checks, width=width)
    yield from (f"note: {note}" for note in verdict.get("notes", ()))
    for model, metrics in verdict.get("reference_models", {}).items():
        listed = ", ".join(f"{name} {_number(value)}" for name, value in metrics.items())
        yield f"for comparison, {model}: {listed}"
    yield from _slice_table(
        verdict.get("slices", {}),
        checks,
        min_rows=verdict.get("min_slice_rows", 0),
        width=width,
    )


def check_table(
    checks: Sequence[VerdictCheck], *, limit: int | None = None, width: int | None = None
) -> Iterator[str]:
    """Yield a table of checks, failed ones first: metric, slice, required, got, baseline, verdict.

    Args:
        checks: the checks in `verdict.json`.
        limit: the maximum number of checks; None for all.
        width: the maximum width in columns, within which long texts wrap; None: one line per check.
    """
    ordered = sorted(checks, key=severity)
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
            SEVERITIES[severity(c)],
        )
        for c in shown
    ]
    yield from _table(head, rows, width)
    if len(ordered) > len(shown):
        passed = sum(severity(c) == 2 for c in ordered[len(shown) :])
        yield f"and {len(ordered) - len(shown)} more, {passed} of them passed"


def _got(check: VerdictCheck) -> str:
    if check["got"] is None:
        return str(check.get("found", ""))
    return " ".join(filter(None, (_number(check["got"]), check.get("unit", ""))))


def _slice_table(
    slices: Mapping[str, Mapping[str, float]],
    checks: Sequence[VerdictCheck],
    *,
    min_rows: int,
    width: int | None,
) -> Iterator[str]:
    found = {name: metrics for name, metrics in slices.items() if name != "overall"}
    known = {metric for each in slices.values() for metric in each}
    metrics = [name for name in dict.fromkeys(c["metric"] for c in checks) if name in known]
    if not found or not metrics:
        return
    ordered, small = worst_first(found, metrics[0], min_rows=min_rows, checks=checks)
    shown = ordered[:_SHOWN_SLICES]
    rows = [
        (
            name,
            _number(found[name].get("example_count")) + (" (few)" if name in small else ""),
            *(_number(found[name].get(metric)) for metric in metrics),
        )
        for name in shown
    ]
    yield from _table((f"slice, by {metrics[0]}", "examples", *metrics), rows, width)
    if small.intersection(shown):
        yield f"few: under {min_rows} rows (evaluate.min_slice_rows): not judged, listed last"
    if len(found) > len(rows):
        yield f"{len(found) - len(rows)} more slices: see `show --json`, verdict.json of the blessing"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if value != 0 and abs(value) < 1e-3:
        return f"{value:.2g}"
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.4f}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], width: int | None) -> Iterator[str]:
    """Yield lines of at most `width` columns: the longest texts are wrapped, and nothing is cut off."""
    cells = [[printable(cell).replace("\n", "\\n") for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if width is None:
        for row in cells:
            yield _GAP.join(cell.ljust(most) for cell, most in zip(row, widths, strict=True)).rstrip()
    elif sum(min(most, _UNFOLDED) + len(_GAP) for most in widths) <= width:
        yield from _folded(cells, widths, width)
    else:
        yield from _one_below_another(cells)


def _folded(cells: Sequence[Sequence[str]], widths: Iterable[int], width: int) -> Iterator[str]:
    from rich.console import Console  # takes 0.1 s, and a log does not need it
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), show_header=False)
    for most in widths:
        table.add_column(overflow="fold", no_wrap=most <= _UNFOLDED)
    for row in cells:
        # Text, not str: a bracket in a name must not be read as markup.
        table.add_row(*map(Text, row))
    screen = Console(file=io.StringIO(), width=width, color_system=None)
    with screen.capture() as capture:
        screen.print(table)
    yield from (line.rstrip() for line in capture.get().splitlines())


def _one_below_another(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield one field per line, for a screen too narrow for the columns."""
    head, *rows = cells
    for row in rows:
        yield from (
            f"{'  ' if place else ''}{name}: {cell}"
            for place, (name, cell) in enumerate(zip(head, row, strict=True))
            if cell
        )
