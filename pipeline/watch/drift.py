"""Finds the columns of requests that have drifted from the training data, by the data gate's rules. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from slipway.components.data_gate.finding import Finding
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.distribution_limits import TRAIN, find_drift
from slipway.components.data_gate.rules.missing import find_missing
from slipway.components.data_gate.statistics import SplitStatistics


@dataclass(frozen=True)
class Judged:
    """The judgement on one window.

    Attributes:
        name: the window's first hour or day.
        last: its last one; empty if it is the first.
        findings: the findings by column; at most one each.
    """

    name: str
    rows: int
    findings: Mapping[str, Finding]
    last: str = ""

    @property
    def span(self) -> str:
        """The window's hours or days in words."""
        return f"{self.name} to {self.last}" if self.last else self.name


@dataclass(frozen=True)
class Drifted:
    """A column that has drifted in the newest window.

    Attributes:
        since: the first of the consecutive windows, up to the newest, in which the column has drifted.
        is_from_begin: whether that is the first window of all.
    """

    column: str
    since: str
    is_from_begin: bool
    finding: Finding


def judge_window(
    now: SplitStatistics, own: SplitStatistics, training: SplitStatistics, limits: Limits
) -> dict[str, Finding]:
    """Return one finding per column of a window; missing values take precedence over drift.

    Args:
        now: the window's statistics, with numbers counted at the deciles of the training data.
        own: the same with the window's own deciles, which show a change of scale.
    """
    then = {TRAIN: training}
    moved = list(find_drift({TRAIN: now}, then, limits, skip=()))
    differs = {finding.feature for finding in moved}
    scaled = [
        finding
        for finding in find_drift({TRAIN: own}, then, limits, skip=())
        if finding.rule == "scale" and finding.feature in differs
    ]
    missing = (each for each in find_missing({TRAIN: now}, then, {}, limits) if each.stops)
    found: dict[str, Finding] = {}
    for finding in (*missing, *scaled, *moved):
        found.setdefault(finding.feature, replace(finding, splits=()))
    return found


def drifted(judged: Sequence[Judged]) -> tuple[Drifted, ...]:
    """Return the columns that have drifted in the newest window, those that have drifted longest first.

    Args:
        judged: the windows, earliest first; at least one.
    """
    found = []
    for column, finding in judged[-1].findings.items():
        first = len(judged) - 1
        while first and column in judged[first - 1].findings:
            first -= 1
        found.append((first, Drifted(column, judged[first].name, first == 0, finding)))
    return tuple(each for _, each in sorted(found, key=lambda pair: (pair[0], pair[1].column)))
