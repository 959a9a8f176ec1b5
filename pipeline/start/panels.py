"""Detects panel data (many things observed over time) by the order of rows, whatever the names. Pure."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.data_profile.columns import categories
from slipway.pipeline.start.facts import Facts

Values = npt.NDArray[Any]

# A panel has many groups of a few rows each; with more rows per group, a model can learn each group alone.
LEAST_GROUPS, MOST_ROWS_PER_GROUP, LEAST_ROWS_PER_GROUP = 20, 30.0, 1.5
# So many rows may lack a value of a column that identifies something by its name; they are in one split.
MOST_MISSING = 0.05
# Fewer rows may be in order by chance. With this many rows, it is no chance if a quarter of all pairs of
# group and time occur, and none occurs twice.
_LEAST_ROWS, _LEAST_FILLED, _LEAST_TIMES = 100, 0.25, 2
_ORDER_NAME = re.compile(
    r"date|time|year|quarter|month|week|day|hour|minute|second|wave|period|visit|round|(^|_)(age|t)$",
    re.IGNORECASE,
)
# The maximum number of columns to try, and the number of rows to try first.
_MOST_COLUMNS, _FIRST_ROWS = 20, 2_000


def identifies_small_groups(
    facts: Facts, *, is_named: bool = False, most_missing: float = MOST_MISSING
) -> bool:
    """Whether a column has a value in every row, and many values that recur in a few rows each.

    Args:
        is_named: whether the column's name says that it identifies something; then it is enough if any value
            recurs, and a few rows may have none.
        most_missing: the share of rows that may have none if it is named.
    """
    if not (facts.is_whole or facts.kind == "text") or facts.distinct < LEAST_GROUPS:
        return False
    if facts.missing_share > (most_missing if is_named else 0.0):
        return False
    rows = facts.present / facts.distinct
    return rows <= MOST_ROWS_PER_GROUP and (rows > 1 if is_named else rows >= LEAST_ROWS_PER_GROUP)


def find_panel(facts: Sequence[Facts], columns: Mapping[str, Values]) -> tuple[str, str] | None:
    """Return the column that identifies the observed thing and the column of its time, or None.

    In a panel, each thing has at most one row per time, its rows are in the order of the times, and the
    things share these times. The colour or the make of a car does not qualify: its rows are in no order.

    Args:
        facts: the properties of the columns to consider.
        columns: their values, of equal length, in the order of the file.
    """
    groups = [each for each in facts if identifies_small_groups(each) and not _is_order(each)]
    orders = [each for each in facts if not each.missing and (each.kind != "text" or each.moment)]
    for group in islice(groups, _MOST_COLUMNS):
        for order in islice((each for each in orders if _may_order(each, group)), _MOST_COLUMNS):
            values = columns[group.name], columns[order.name]
            first = [each[:_FIRST_ROWS] for each in values]
            if _is_in_order(*first) and _is_in_order(*values):
                return group.name, order.name
    return None


def _is_order(facts: Facts) -> bool:
    return bool(facts.moment or _ORDER_NAME.search(facts.name))


def _may_order(order: Facts, group: Facts) -> bool:
    if order.name == group.name or group.rows < _LEAST_ROWS or order.distinct < _LEAST_TIMES:
        return False
    is_filled = group.rows >= _LEAST_FILLED * group.distinct * order.distinct
    return is_filled and (_is_order(order) or order.distinct < group.distinct)


def _is_in_order(groups: Values, orders: Values) -> bool:
    """Whether the orders rise from row to row within each group, or fall in all groups."""
    codes = categories(groups)
    if orders.dtype == object:
        orders = np.unique(orders.astype(str), return_inverse=True)[1]
    rows = np.argsort(codes, kind="stable")
    with np.errstate(invalid="ignore"):  # between two infinite numbers there is no step
        steps = np.diff(orders[rows])[codes[rows][1:] == codes[rows][:-1]]
    return bool((steps > 0).all() or (steps < 0).all())
