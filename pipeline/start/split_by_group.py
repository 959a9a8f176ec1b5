"""Decides whether rows that belong together, such as those of a person, stay in one split. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.counted_words import counted
from slipway.components.data_profile.columns import categories, is_missing
from slipway.pipeline.start.deciding import NO_FEATURES, Decision, Plan, Role
from slipway.pipeline.start.facts import Facts
from slipway.pipeline.start.id_names import is_group
from slipway.pipeline.start.panels import MOST_MISSING, find_panel, identifies_small_groups
from slipway.pipeline.start.split_rule import Split

Values = npt.NDArray[Any]


def split_by_group(plan: Plan, columns: Mapping[str, Values]) -> tuple[Plan, Split | None]:
    """Return the split by groups: by an ID column, or by the column that identifies the things of a panel."""
    may_be = [
        d.facts
        for d in plan.decisions
        if d.role not in (Role.LABEL, Role.WEIGHT) and not d.is_kept and not d.facts.is_list
    ]
    named = _widest_first(ids_of_groups(may_be), columns)
    panel = find_panel(may_be, columns) if not named else None
    for name in [each.name for each in named] or list(panel or ())[:1]:
        decision = next(each for each in plan.decisions if each.facts.name == name)
        if not any(d.role not in NO_FEATURES and d != decision for d in plan.decisions):
            continue
        facts = decision.facts
        rows = f"{facts.present / facts.distinct:.1f} rows on average"
        over = f", in the order of {panel[1]}" if panel else ""
        why = f"identifies groups of {rows}{over}: it decides the split, and is not a feature"
        missing = f"; {counted(facts.missing, 'row')} without one, too" if facts.missing else ""
        group = Decision(facts, Role.GROUP, why)
        decisions = tuple(group if each == decision else each for each in plan.decisions)
        split = Split(
            {"key": facts.name},
            f"by {facts.name}: the rows of each of its {counted(facts.distinct, 'value')} stay "
            f"together{missing}",
            {},
            facts.distinct,
        )
        return replace(plan, decisions=decisions), split
    return plan, None


def ids_of_groups(columns: Sequence[Facts]) -> list[Facts]:
    """Return the columns that by their names identify persons, or the like, of a few rows each."""
    return [each for each in columns if is_group(each.name) and identifies_small_groups(each, is_named=True)]


def _widest_first(ids: Sequence[Facts], columns: Mapping[str, Values]) -> list[Facts]:
    """Return the ids with those in front whose groups hold those of others, as a customer's hold orders."""
    codes = {each.name: categories(columns[each.name]) for each in ids}
    present = {each.name: ~is_missing(columns[each.name]) for each in ids}

    def holds(outer: Facts, inner: Facts) -> bool:
        if outer.distinct >= inner.distinct:
            return False
        known = present[outer.name] & present[inner.name]
        inside, around = codes[inner.name][known], codes[outer.name][known]
        pairs = inside.astype(np.int64) * (len(known) + 1) + around
        return len(np.unique(pairs)) == len(np.unique(inside))

    return sorted(ids, key=lambda outer: -sum(holds(outer, inner) for inner in ids))


def _ids(plan: Plan, roles: Collection[Role]) -> list[Decision]:
    """Return the features with one of some roles that identify small groups of rows by their name."""
    return [
        each
        for each in plan.with_role(*roles)
        if is_group(each.facts.name)
        and not each.is_kept
        and identifies_small_groups(each.facts, is_named=True, most_missing=1.0)
    ]


def without_ids(plan: Plan, roles: Collection[Role]) -> Plan:
    """Return the plan without the ids of small groups that have one of some roles, if a feature is left."""
    ids = _ids(plan, roles)
    if all(each.role in NO_FEATURES or each in ids for each in plan.decisions):
        return plan
    decisions = tuple(
        Decision(each.facts, Role.LEFT_OUT, f"identifies groups of {_rows_each(each)}: it is not a feature")
        if each in ids
        else each
        for each in plan.decisions
    )
    return replace(plan, decisions=decisions)


def told_of_ids(plan: Plan) -> Plan:
    """Return the plan without ids of small groups, and notes that they don't decide the split.

    Too many rows lack one: all of these would be in one split.
    """
    roles = (Role.NUMBER, Role.AMOUNT, Role.CATEGORY)
    left = without_ids(plan, roles)
    notes = [
        f"{each.facts.name} identifies groups of {_rows_each(each)}, but {each.facts.missing_share:.0%} of "
        "all rows have none, so it does not decide the split: rows of one group may be in both parts, and "
        "the metrics too good. Fill the empty cells, each with a value of its own if need be, and start "
        "again."
        for each in _ids(plan, roles)
        if each.facts.missing_share > MOST_MISSING
    ]
    return replace(left, notes=(*left.notes, *notes))


def _rows_each(decision: Decision) -> str:
    return f"{decision.facts.present / decision.facts.distinct:.1f} rows on average"
