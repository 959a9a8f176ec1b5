"""Finds the statistics of all rows among those of the slices. Pure."""

from typing import Any

from tensorflow_metadata.proto.v0 import statistics_pb2

from slipway.components.errors import ComponentError

ALL_ROWS = "All Examples"
"""TFDV's name for the statistics of all rows if there are slices; without slices, they have no name."""


def of_all_rows(data: bytes) -> Any:
    """Return the statistics of all rows of a split.

    Args:
        data: the content of StatisticsGen's `FeatureStats.pb`. TFX's own executor writes slices in any order.

    Returns:
        A `DatasetFeatureStatistics`.

    Raises:
        ComponentError: there are only statistics of several slices.
    """
    datasets = statistics_pb2.DatasetFeatureStatisticsList.FromString(data).datasets
    found = [each for each in datasets if each.name == ALL_ROWS or len(datasets) == 1]
    if not found:
        raise ComponentError(
            f"the statistics hold {len(datasets)} slices, and not those of all rows",
            hint="have StatisticsGen compute them: it does, unless your own component leaves them out",
        )
    return found[0]
