"""One metric by slice as bars: as plain text for every Markdown viewer, and as a picture. Pure."""

import html
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from slipway.components.metrics.better_side import bounds_of_checks, is_lower_better

SHOWN_SLICES = 40
"""The most slices to draw, the worst ones."""

_SHOWN_TEXT = 200
_CELLS = 40
_ROW_PX = 20
_NAME_PX = 300
_BAR_PX = 320
_WIDTH_PX = 760
_NAME_LETTERS = 42


@dataclass(frozen=True)
class Bar:
    """One slice.

    Attributes:
        name: as in the evaluation, on one line.
        share: of the longest bar's length, 0 to 1; an infinite value's bar is as long as the longest.
        examples: number of examples in the slice; None if they were not counted.
    """

    name: str
    value: float
    share: float
    examples: float | None

    @property
    def count(self) -> str:
        """The number of examples in words; may be empty."""
        return "" if self.examples is None else f"{self.examples:.0f} examples"


@dataclass(frozen=True)
class SliceChart:
    """The bars of one metric, the worst first.

    Attributes:
        bars: at most `SHOWN_SLICES`.
        is_error: whether the highest value is the worst; of metrics of one's own as `is_lower_better` says.
    """

    metric: str
    bars: tuple[Bar, ...]
    left_out: int
    is_error: bool = False

    @property
    def order(self) -> str:
        """The order of the bars in words."""
        return f"the {'highest' if self.is_error else 'lowest'} first"

    def lines(self) -> Iterator[str]:
        """Yield the chart as plain text, one line per slice."""
        width = max(len(bar.name) for bar in self.bars)
        for bar in self.bars:
            cells = "█" * round(_CELLS * bar.share)
            yield f"{bar.name:<{width}}  {bar.value:>8.4g}  {cells}{'  ' if bar.count else ''}{bar.count}"

    def svg(self) -> str:
        """Return the chart as a picture without external references or scripts; all text in it is escaped."""
        height = _ROW_PX * (len(self.bars) + 2)
        title = html.escape(f"{plain(self.metric)} by slice, {self.order}")
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH_PX}" height="{height}" '
            f'viewBox="0 0 {_WIDTH_PX} {height}" role="img" font-family="sans-serif" font-size="12">'
        )
        rows = (line for place, bar in enumerate(self.bars, 1) for line in _row(bar, place * _ROW_PX + 14))
        body = (
            f"<title>{title}</title>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            f'<text x="8" y="16" font-weight="bold" fill="#202020">{title}</text>',
            *rows,
        )
        return "\n".join([head, *body, "</svg>", ""])


def slice_chart(provenance: Mapping[str, object]) -> SliceChart | None:
    """Chart the first metric other than the number of examples; None if fewer than two slices have it.

    Args:
        provenance: `metrics` overall, `slices` by name and the `checks` of `gate`, as returned by
            `collect_provenance`.
    """
    metric = next((name for name in numbers(provenance.get("metrics")) if name != "example_count"), "")
    slices = provenance.get("slices")
    found = {name: numbers(values) for name, values in slices.items()} if isinstance(slices, Mapping) else {}
    is_error = is_lower_better(metric, bounds_of_checks(_checks(provenance.get("gate")), metric))
    values = sorted(
        ((each[metric], name) for name, each in found.items() if not math.isnan(each.get(metric, math.nan))),
        key=lambda item: (-item[0] if is_error else item[0], item[1]),
    )
    if len(values) < 2:
        return None
    largest = max((abs(value) for value, _ in values if math.isfinite(value)), default=0.0) or 1.0
    bars = tuple(
        Bar(plain(name), value, min(max(value, 0.0) / largest, 1.0), found[name].get("example_count"))
        for value, name in values[:SHOWN_SLICES]
    )
    return SliceChart(metric, bars, len(values) - len(bars), is_error)


def _checks(gate: Any) -> list[Mapping[str, object]]:
    """Return the checks of a gate; one of another pipeline may write anything in their place."""
    checks = gate.get("checks") if isinstance(gate, Mapping) else None
    return [each for each in checks if isinstance(each, Mapping)] if isinstance(checks, list | tuple) else []


def plain(value: Any) -> str:
    """Return untrusted text on one line, without terminal control characters and ends of code blocks."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(value)).replace("~~~", "~ ~")
    return text if len(text) <= _SHOWN_TEXT else f"{text[:_SHOWN_TEXT]}..."


def numbers(value: Any) -> dict[str, float]:
    """Return the entries of a mapping that are numbers; none if it is not a mapping."""
    if not isinstance(value, Mapping):
        return {}
    return {
        name: number
        for name, number in value.items()
        if isinstance(number, int | float) and not isinstance(number, bool)
    }


def _row(bar: Bar, y: int) -> Iterator[str]:
    name = bar.name if len(bar.name) <= _NAME_LETTERS else f"{bar.name[: _NAME_LETTERS - 3]}..."
    width = round(_BAR_PX * bar.share)
    fill = "#4a4a4a" if bar.name == "overall" else "#3b75af"
    told = f"{bar.value:.4g}" + (f" ({bar.count})" if bar.count else "")
    yield f'<text x="{_NAME_PX}" y="{y}" text-anchor="end" fill="#202020">{html.escape(name)}</text>'
    yield f'<rect x="{_NAME_PX + 8}" y="{y - 11}" width="{width}" height="14" fill="{fill}"/>'
    yield f'<text x="{_NAME_PX + 14 + width}" y="{y}" fill="#202020">{told}</text>'
