"""What of the requests has drifted from the data of the training, by the data gate's rules. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from slipway.components.data_gate.finding import Finding
from slipway.components.data_gate.limits import Limits
from slipway.components.data_gate.rules.drift_and_skew import TRAIN, find_drift
from slipway.components.data_gate.rules.missing import find_missing
from slipway.components.data_gate.statistics import SplitStatistics


@dataclass(frozen=True)
class Judged:
    """One window.

    Attributes:
        name: the hour or day that it begins with.
        findings: by column; at most one each.
    """

    name: str
    rows: int
    findings: Mapping[str, Finding]


@dataclass(frozen=True)
class Drifted:
    """A column that has drifted in the newest window.

    Attributes:
        since: the first of the windows in a row, up to the newest, in which it has.
        is_from_begin: whether those are all windows there are.
        finding: of the newest.
    """

    column: str
    since: str
    is_from_begin: bool
    finding: Finding


def judge_window(
    now: SplitStatistics, own: SplitStatistics, training: SplitStatistics, limits: Limits
) -> dict[str, Finding]:
    """The findings of one window by column: missing values before drift.

    Args:
        now: its statistics, numbers counted at the training's deciles.
        own: the same with its own deciles, which show a factor.
    """
    then = {TRAIN: training}
    moved = list(find_drift({TRAIN: now}, then, limits, skip=()))
    differs = {finding.feature for finding in moved}
    scaled = [
        finding
        for finding in find_drift({TRAIN: own}, then, limits, skip=())
        if finding.rule == "scale" and finding.feature in differs
    ]
    found: dict[str, Finding] = {}
    for finding in (*find_missing({TRAIN: now}, then, {}, limits), *scaled, *moved):
        found.setdefault(finding.feature, replace(finding, splits=()))
    return found


def drifted(judged: Sequence[Judged]) -> tuple[Drifted, ...]:
    """The columns that have drifted in the newest window, those that did first in front.

    Args:
        judged: the windows, the earliest first; at least one.
    """
    found = []
    for column, finding in judged[-1].findings.items():
        first = len(judged) - 1
        while first and column in judged[first - 1].findings:
            first -= 1
        found.append((first, Drifted(column, judged[first].name, first == 0, finding)))
    return tuple(each for _, each in sorted(found, key=lambda pair: (pair[0], pair[1].column)))
