"""Statistics made of values, as TFDV makes them."""

import numpy as np
import pytest

from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.statistics import Distribution, FeatureStatistics, SplitStatistics
from slipway.components.data_gate.verdict import Evidence, judge


def _numbers(name, values, *, rows, quantiles):
    values = np.asarray(values, dtype=np.float64)
    edges = np.quantile(values, np.linspace(0, 1, quantiles + 1))
    points = np.repeat(edges, 2)[1:-1]
    below = np.repeat(np.linspace(0, 1, quantiles + 1), 2)[1:-1]
    kind = "int" if (values == values.round()).all() else "float"
    return FeatureStatistics(
        name, kind, rows, len(values), len(values),
        min=values.min(), max=values.max(), mean=values.mean(), std_dev=values.std(),
        distribution=Distribution(points, below),
    )  # fmt: skip


@pytest.fixture(scope="session")
def feature():
    """A feature's statistics: of a list of numbers, or of {text: how often}; `rows` counts empty ones too."""

    def call(name, values, *, rows=None, quantiles=100):
        if isinstance(values, dict):
            count = sum(values.values())
            return FeatureStatistics(
                name, "text", rows or count, count, count, unique=len(values), counts=values
            )
        if len(values) == 0:
            return FeatureStatistics(name, "float", rows, 0)
        return _numbers(name, values, rows=rows or len(values), quantiles=quantiles)

    return call


@pytest.fixture(scope="session")
def split(feature):
    """A split's statistics, of the values of its features by name."""

    def call(rows=None, **values):
        made = {
            name: value if isinstance(value, FeatureStatistics) else feature(name, value, rows=rows)
            for name, value in values.items()
        }
        return SplitStatistics(rows or max((each.rows for each in made.values()), default=0), made)

    return call


@pytest.fixture(scope="session")
def verdict():
    """The gate's answer about some statistics."""

    def call(statistics, *, limits=None, label="label", accepted="", **evidence):
        made = Evidence(
            statistics=statistics, label=label, limits=limits or Limits(), now_s=1.8e9, **evidence
        )
        return judge(made, accepted=accepted)

    return call
