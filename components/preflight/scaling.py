"""What larger slices of one generation bring, and from where on more chips no longer pay. Pure.

The global batch is the same on every slice (strong scaling), so the training is the same, too. All times are
least times, and a step counts `DISPATCH_S` at least, since a shorter one waits for its call.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from slipway.components.preflight.advice import SliceVerdict
from slipway.components.preflight.amounts import duration
from slipway.components.preflight.finding import OF_THE_BACKEND
from slipway.components.preflight.roofline import Estimate
from slipway.components.preflight.step_rules import DISPATCH_S

LEAST_SHARE = 0.5
"""More chips pay while each of those added brings at least this share of what one of the smallest slice does.

At one price per chip-hour, this is where added chips bring their examples at twice the price. The limit is
ours.
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One slice beside the smallest of its generation.

    Attributes:
        examples_per_s: the most examples per second.
        speedup: how many times as fast as the smallest slice it is.
        chip_share: what one of its chips brings, as a share of what one of the smallest slice does.
        added_share: what each of the chips that the next smaller slice lacks brings, likewise; None for the
            smallest.
        pays: whether it and all smaller slices pay.
    """

    name: str
    chips: int
    hosts: int
    examples_per_s: float
    speedup: float
    chip_share: float
    added_share: float | None
    pays: bool


def scaling(verdicts: Sequence[SliceVerdict]) -> list[Row]:
    """Return a row for each slice that has an estimate, by chips; all must be of one generation."""
    able = sorted(
        (each.estimate.chips, each.question.slice.name, each.question.slice.hosts, _rate(each.estimate))
        for each in verdicts
        if each.estimate is not None
    )
    rows: list[Row] = []
    for chips, name, hosts, rate in able:
        first = rows[0] if rows else None
        last = rows[-1] if rows else None
        one = first.examples_per_s / first.chips if first else rate / chips
        added = (rate - last.examples_per_s) / (chips - last.chips) / one if last else None
        rows.append(
            Row(
                name=name,
                chips=chips,
                hosts=hosts,
                examples_per_s=rate,
                speedup=rate / first.examples_per_s if first else 1.0,
                chip_share=rate / chips / one,
                added_share=added,
                pays=last is None or (last.pays and added is not None and added >= LEAST_SHARE),
            )
        )
    return rows


def _rate(estimate: Estimate) -> float:
    return estimate.batch_size / max(estimate.step_s, DISPATCH_S)


def generations(verdicts: Sequence[SliceVerdict]) -> dict[str, list[SliceVerdict]]:
    """Return the verdicts that can be compared, by generation, where there are several.

    Errors that do not change the step (those of another backend, too few files, which more shards mend, too
    few examples, settings for one host) do not matter; a batch that a slice cannot divide does.
    """
    found: dict[str, list[SliceVerdict]] = {}
    for each in verdicts:
        wrong = {finding.rule for finding in each.findings if finding.severity == "error"}
        if each.estimate is not None and wrong <= {*OF_THE_BACKEND, "files", "hosts", "rows"}:
            found.setdefault(each.question.slice.generation, []).append(each)
    return {generation: each for generation, each in found.items() if len(each) > 1}


def scaling_lines(generation: str, verdicts: Sequence[SliceVerdict]) -> list[str]:
    """Return the table of one generation's slices, and in a sentence where more chips stop paying."""
    rows, by_name = scaling(verdicts), {each.question.slice.name: each for each in verdicts}
    cells: list[tuple[str, ...]] = [
        ("slice", "chips", "hosts", "step", "bound by", "faster", "a chip's", "added", "host reads", "pays")
    ]
    for row in rows:
        verdict = by_name[row.name]
        estimate, rate = verdict.estimate, verdict.input_bytes_per_s
        if estimate is None:
            continue
        if rate is not None:  # no more than the steps that are counted take
            rate *= row.examples_per_s / estimate.examples_per_s
        cells.append(
            (
                row.name,
                str(row.chips),
                str(row.hosts),
                duration(estimate.step_s),
                estimate.bound,
                f"{row.speedup:.3g}x",
                f"{row.chip_share:.0%}",
                "" if row.added_share is None else f"{row.added_share:.0%}",
                "?" if rate is None else f"{rate / row.hosts / 2**20:,.0f} MiB/s",
                "yes" if row.pays else "no",
            )
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    batches = {each.question.batch_size for each in verdicts}
    table = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells]
    return [
        f"estimate of {generation} by slice, batch {min(batches):,} on each:",
        *(line.rstrip() for line in table),
        where_it_stops(rows),
    ]


def where_it_stops(rows: Sequence[Row]) -> str:
    """Return where more chips stop paying, in a sentence, with the rule."""
    rule = (
        f"(rule: each chip added brings at least {LEAST_SHARE:.0%} of what one of {rows[0].name} does; "
        f"a step counts {duration(DISPATCH_S)} at least, the time of its call)"
    )
    refused = next((row for row in rows if not row.pays), None)
    if refused is None:
        return f"more chips pay up to {rows[-1].name} at least {rule}"
    last = rows[rows.index(refused) - 1]
    return (
        f"more chips stop paying after {last.name}: each of the {refused.chips - last.chips:,} that "
        f"{refused.name} adds brings {refused.added_share:.0%} {rule}"
    )


def to_json(verdicts: Sequence[SliceVerdict]) -> list[dict[str, object]]:
    """Return the scaling of each generation that has several slices, as plain values."""
    return [
        {
            "generation": generation,
            "rows": [asdict(row) for row in scaling(each)],
            "says": where_it_stops(scaling(each)),
        }
        for generation, each in generations(verdicts).items()
    ]
