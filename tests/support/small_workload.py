"""The smallest workload there can be, as its file or as settings of which a test changes what it is about."""

from typing import Any

import yaml

from slipway.pipeline.config import WorkloadConfig

MINIMAL = """\
name: toy
data:
  source: data/trips.csv
  label: tips
transform:
  preprocessing_fn: work.features.preprocess
train:
  model: work.model.build
"""


def small_workload(**sections: Any) -> WorkloadConfig:
    """Return settings whose data and code are not there: for tests that read neither, or name their own.

    Args:
        sections: what to change, e.g. `push={"keep": 2}`; the other keys of a section stay.
    """
    given = yaml.safe_load(MINIMAL)
    for name, value in sections.items():
        given[name] = given.get(name, {}) | value if isinstance(value, dict) else value
    return WorkloadConfig.model_validate(given)
