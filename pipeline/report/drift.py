"""Measures the drift of each column from the reference data, with the data gate's distances. Pure."""

from dataclasses import dataclass

from slipway.components.data_gate.protos import split_statistics
from slipway.components.data_gate.rules.distances import jensen_shannon, l_infinity
from slipway.components.data_gate.statistics import FeatureStatistics


@dataclass(frozen=True)
class Drift:
    """The distance between a column's distributions in two sets of rows.

    Attributes:
        value: 0 (the same distribution) to 1.
    """

    measure: str
    value: float


def drifts(now: bytes, then: bytes) -> dict[str, Drift]:
    """Return the distance of each column that has values in both sets.

    Args:
        now: the statistics of one split: the content of `FeatureStats.pb`.
        then: the statistics of the reference, likewise.
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
        sums = now.counted, then.counted
        return Drift("L-infinity", l_infinity(now.counts, then.counts, sums)[0])
    return None
