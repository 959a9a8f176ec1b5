"""The distance of each column from the data it is compared with, by the data gate's own measures. Pure."""

from dataclasses import dataclass

from slipway.components.data_gate.protos import split_statistics
from slipway.components.data_gate.rules.distances import jensen_shannon, l_infinity
from slipway.components.data_gate.statistics import FeatureStatistics


@dataclass(frozen=True)
class Drift:
    """The distance of one column's values in two sets of rows.

    Attributes:
        measure: its name.
        value: 0, all alike, to 1.
    """

    measure: str
    value: float


def drifts(now: bytes, then: bytes) -> dict[str, Drift]:
    """The distance of each column with values in both sets.

    Args:
        now: the statistics of one split, as `FeatureStats.pb` holds them.
        then: those of what it is compared with.
    """
    before = split_statistics(then).features
    found = {
        name: _drift(feature, before[name])
        for name, feature in split_statistics(now).features.items()
        if name in before
    }
    return {name: drift for name, drift in found.items() if drift is not None}


def _drift(now: FeatureStatistics, then: FeatureStatistics) -> Drift | None:
    if now.is_number and then.is_number and now.distribution and then.distribution:
        return Drift("Jensen-Shannon", jensen_shannon(now.distribution, then.distribution)[0])
    if now.counts and then.counts:
        return Drift("L-infinity", l_infinity(now.counts, then.counts)[0])
    return None
