"""Finds faults in the rows: too few, far more or fewer than before, duplicates, rows in quarantine."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from slipway.components.counted_words import agreeing, counted
from slipway.components.data_gate.finding import Finding, RowQuery, limit_words, percent, share
from slipway.components.data_gate.rule_limits import Limits, key
from slipway.components.data_gate.statistics import Statistics, total_rows


@dataclass(frozen=True, slots=True)
class QuarantineSummary:
    """The summary of Ingest's quarantine.

    Attributes:
        rejected: the number of rows in quarantine, by reason.
        first: descriptions of the first of them.
        notes: by column, how its values were read differently from how they are written.
    """

    rows_in: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    first: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


def find_row_counts(statistics: Statistics, reference: Statistics, limits: Limits) -> Iterator[Finding]:
    """Find too few rows, an empty split, or far more or fewer rows than in the reference."""
    rows = total_rows(statistics)
    for name, split in statistics.items():
        what, remedy = "no rows", "check data.source and data.split"
        if split.sampled == 0:
            remedy = f"raise statistics.sample_rate, or {remedy}"  # with none drawn, `rows` is a guess
            if split.rows:
                what = f"none of its {counted(split.rows, 'row')} was drawn for the statistics"
        elif split.rows:
            continue
        yield Finding(rule="rows", feature="", splits=(name,), what=what, remedy=remedy)
    if rows < limits.min_rows:
        yield Finding(
            rule="rows",
            feature="",
            splits=(),
            what=f"{counted(rows, 'row')} in total, needs {limits.min_rows:,}",
            measured=rows,
            key=key("min_rows"),
            remedy=f"add rows, or lower {key('min_rows')}",
        )
    before = total_rows(reference)
    change = (rows - before) / before if before else 0.0
    if abs(change) > limits.max_row_change:
        verb = "more" if change > 0 else "fewer"
        yield Finding(
            rule="rows",
            feature="",
            splits=(),
            what=f"{counted(rows, 'row')}, {percent(abs(change))} {verb} "
            f"than the {before:,} of the reference",
            measured=abs(change),
            limit=limits.max_row_change,
            key=key("max_row_change"),
            remedy="check whether files are missing or duplicated; if it is right, raise "
            f"{key('max_row_change')} above {abs(change):.2f}",
        )


def find_duplicates(
    repeated: int,
    looked_at: int,
    limits: Limits,
    *,
    examples: Sequence[Mapping[str, float | str | None]] = (),
) -> Iterator[Finding]:
    """Find too many rows that repeat an earlier one.

    Args:
        repeated: the number of rows of the sample that repeat an earlier one.
        limits: uses `max_duplicate_share`.
        examples: some of the rows that repeat another, by column.
    """
    measured = repeated / looked_at if looked_at else 0.0
    if measured > limits.max_duplicate_share:
        yield Finding(
            rule="duplicates",
            feature="",
            splits=(),
            what=f"{share(repeated, looked_at)} repeat an earlier row",
            measured=measured,
            limit=limits.max_duplicate_share,
            key=key("max_duplicate_share"),
            remedy="check whether a file is there twice; if such rows are normal, raise "
            f"{key('max_duplicate_share')} above {limit_words(measured, decimals=2)}",
            query=RowQuery(next(iter(examples[0])), like=tuple(examples)) if examples else None,
        )


def find_bad_rows(quarantine: QuarantineSummary, limits: Limits) -> Iterator[Finding]:
    """Report rows in quarantine: a finding above the limit, a note below it."""
    rejected = sum(quarantine.rejected.values())
    if not rejected:
        return
    measured = rejected / quarantine.rows_in
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in quarantine.rejected.items())
    yield Finding(
        rule="bad rows",
        feature="",
        splits=(),
        what=f"{share(rejected, quarantine.rows_in)} {agreeing(rejected, 'are')} in quarantine ({reasons}), "
        f"first: {'; '.join(quarantine.first)}",
        measured=measured,
        limit=limits.max_bad_share,
        key=key("max_bad_share"),
        remedy=f"correct these rows, or raise {key('max_bad_share')}",
        stops=measured > limits.max_bad_share,
    )


def find_conversion_notes(quarantine: QuarantineSummary) -> Iterator[Finding]:
    """Report values that Ingest reads differently from how they are written, one note per column."""
    for column, what in quarantine.notes.items():
        yield Finding(rule="read otherwise", feature=column, splits=(), what=what, stops=False)
