"""The model gate's verdict as tables for the screen. Pure."""

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from slipway.components.model_gate.metrics import METRICS, plain_name
from slipway.pipeline.runs.record import Verdict, VerdictCheck
from slipway.pipeline.terminal.printable import printable

# The number of lines that fit a screen together with the nodes.
_SHOWN_SLICES = 12
SHOWN_CHECKS = 16
GRAVITIES = ("FAILED", "warning", "passed")
# Shorter cells, such as numbers, are never folded; a column of longer texts gets at least this width.
_UNFOLDED = 12
_GAP = "  "


def verdict_lines(verdict: Verdict, *, width: int | None = None) -> Iterator[str]:
    """A gate's verdict: every check, what could not be judged, then the metrics of the worst slices.

    Args:
        verdict: as `verdict.json` holds it.
        width: of the screen, in columns, which the tables keep within; None: as wide as they come.
    """
    checks = verdict.get("checks", [])
    yield from check_table(checks, width=width)
    yield from (f"note: {note}" for note in verdict.get("notes", ()))
    for model, metrics in verdict.get("reference_models", {}).items():
        listed = ", ".join(f"{name} {_number(value)}" for name, value in metrics.items())
        yield f"for comparison, {model}: {listed}"
    yield from _slice_table(
        verdict.get("slices", {}),
        [c["metric"] for c in checks],
        min_rows=verdict.get("min_slice_rows", 0),
        width=width,
    )


def check_table(
    checks: Sequence[VerdictCheck], *, limit: int | None = None, width: int | None = None
) -> Iterator[str]:
    """Each check: metric, slice, required, got, baseline, verdict. Failed ones first.

    Args:
        checks: as `verdict.json` holds them.
        limit: how many checks at most; None for all.
        width: of the screen, in columns: long texts go on in the next line; None: a line a check.
    """
    ordered = sorted(checks, key=gravity)
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
            GRAVITIES[gravity(c)],
        )
        for c in shown
    ]
    yield from _table(head, rows, width)
    if len(ordered) > len(shown):
        passed = sum(gravity(c) == 2 for c in ordered[len(shown) :])
        yield f"and {len(ordered) - len(shown)} more, {passed} of them passed"


def _got(check: VerdictCheck) -> str:
    if check["got"] is None:
        return str(check.get("found", ""))
    return " ".join(filter(None, (_number(check["got"]), check.get("unit", ""))))


def gravity(check: VerdictCheck) -> int:
    """The gravity of a check's answer, as an index of `GRAVITIES`."""
    if check["passed"]:
        return 2
    return 0 if check.get("stops", True) else 1


def worst_first(
    slices: Mapping[str, Mapping[str, float]], metric: str, *, min_rows: int
) -> tuple[list[str], frozenset[str]]:
    """The slices, those most worth a look first.

    Args:
        slices: slice -> metric -> value, `example_count` among them.
        metric: that orders them; a slice without a value of it comes after the others.
        min_rows: in a slice with fewer rows chance alone makes values good and bad; the gate does not judge
            it (`evaluate.min_slice_rows`), and it comes after those that are large enough.

    Returns:
        The names, and which of them are of small slices.
    """
    small = frozenset(name for name, each in slices.items() if each.get("example_count", math.inf) < min_rows)
    known = METRICS.get(plain_name(metric))
    sign = -1 if known is not None and known.better == "lower" else 1

    def place(name: str) -> tuple[bool, float]:
        value = slices[name].get(metric)
        return name in small, math.inf if value is None or math.isnan(value) else sign * value

    return sorted(slices, key=place), small


def _slice_table(
    slices: Mapping[str, Mapping[str, float]], checked: Sequence[str], *, min_rows: int, width: int | None
) -> Iterator[str]:
    found = {name: metrics for name, metrics in slices.items() if name != "overall"}
    known = {metric for each in slices.values() for metric in each}
    metrics = [name for name in dict.fromkeys(checked) if name in known]
    if not found or not metrics:
        return
    ordered, small = worst_first(found, metrics[0], min_rows=min_rows)
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
    return f"{value:.4f}".removesuffix(".0000")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], width: int | None) -> Iterator[str]:
    """Lines of at most `width` columns: the longest texts are wrapped, and nothing is cut off."""
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
    from rich.console import Console  # 0.1 s that a log does not need
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
    """One field per line, for a screen too narrow for the columns."""
    head, *rows = cells
    for row in rows:
        yield from (
            f"{'  ' if place else ''}{name}: {cell}"
            for place, (name, cell) in enumerate(zip(head, row, strict=True))
            if cell
        )
