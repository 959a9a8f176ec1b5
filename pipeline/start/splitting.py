"""Chooses how rows are split, and why: by time, by group, by ID, or by position in the file. Pure.

Rows that are similar because they are about the same person, or adjacent in time, must not be in both splits.
Rows that are equal by chance must be split like all others.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.data_profile.columns import categories, is_missing
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.deciding import NO_FEATURES, Decision, Plan, Role
from slipway.pipeline.start.facts import Facts
from slipway.pipeline.start.split_by_group import split_by_group, told_of_ids, without_ids
from slipway.pipeline.start.split_by_time import split_by_time, with_shares
from slipway.pipeline.start.split_rule import Split

Values = npt.NDArray[Any]

# Above this share of rows that repeat another, equal rows are not a coincidence.
COARSE_SHARE = 0.01
# The data gate's own limit. If more repeat another, also in a column whose values are mostly different, then
# somebody doubled them; unless most do so, too, when its values are shuffled, as where there are few columns.
_DOUBLED_SHARE, _SHARE_BY_CHANCE = 0.1, 0.75
# An odd multiplier that mixes the codes of the columns into one hash.
_MIXER = np.uint64(0x9E3779B97F4A7C15)


def decide_split(plan: Plan, columns: Mapping[str, Values], *, is_whole: bool) -> tuple[Plan, Split]:
    """Choose the rule that decides a row's split.

    Args:
        is_whole: whether these are all rows; only then may the split be by time.

    Returns:
        The plan, in which a column that names groups, or has no value before the rows to evaluate on, is no
        longer a feature, and the rule.

    Raises:
        UsageError: no feature is left that has a value in a row with a label.
    """
    plan = _learnable(plan, columns)
    by_time, moved = split_by_time(plan, columns) if is_whole else (None, "")
    if by_time:
        # As a category, an id may stand for what lasts, such as a shop; as a number, it means nothing.
        plan = without_ids(plan, [Role.NUMBER, Role.AMOUNT])
        plan, by_time = with_shares(plan, by_time, columns)
        return plan, _with_repeats(by_time, *_limit(_repeated(plan, columns)))
    if moved:
        plan = replace(plan, notes=(*plan.notes, moved))
    grouped, by_group = split_by_group(plan, columns)
    if by_group:
        grouped = without_ids(grouped, [Role.NUMBER, Role.AMOUNT])
        return grouped, _with_repeats(by_group, *_limit(_repeated(grouped, columns)))
    plan = told_of_ids(plan)
    repeated = _repeated(plan, columns)
    gate, told = _limit(repeated)
    plan = _told_of_doubled(plan, columns, repeated)
    if identity := _identity(plan):
        name = identity.facts.name
        by_hash = Split({"key": name}, f"by a hash of {name}, which is not a feature", unit_count=plan.rows)
        return plan, _with_repeats(by_hash, gate, told)
    if gate:
        by_row = Split({"row": True}, "by a hash of the row's position in its file", unit_count=plan.rows)
        return plan, _with_repeats(by_row, gate, told)
    return plan, Split(unit_count=plan.rows)


def _learnable(plan: Plan, columns: Mapping[str, Values]) -> Plan:
    """Return the plan without the columns that have a value only in rows without a label.

    Raises:
        UsageError: no feature is left.
    """
    known = ~is_missing(columns[plan.label.name])
    if known.all():
        return plan
    decisions = []
    for decision in plan.decisions:
        name, left = decision.facts.name, decision
        # The values of lists are digests here, also of empty ones.
        may_miss = decision.facts.missing and not decision.facts.is_list
        is_feature = decision.role not in NO_FEATURES
        if is_feature and may_miss and is_missing(columns[name])[known].all():
            why = f"no value in a row that has {plan.label.name}, so nothing can be learned of it"
            left = Decision(decision.facts, Role.LEFT_OUT, why)
        decisions.append(left)
    if all(each.role in NO_FEATURES for each in decisions):
        raise UsageError(
            f"No column is left to predict {plan.label.name} from: in the rows that have it, all others are "
            "empty.",
            hint=f"add columns to the file that may help to predict {plan.label.name}",
        )
    return replace(plan, decisions=tuple(decisions))


def _limit(repeated: float) -> tuple[dict[str, float], str]:
    """Return the limit that rows which repeat others need, and why; both empty if few do."""
    if repeated <= COARSE_SHARE:
        return {}, ""
    told = f"{repeated:.0%} of the rows repeat another in the columns that are read"
    return {"max_duplicate_share": round(min(repeated + 0.1, 1.0), 2)}, told


def _told_of_doubled(plan: Plan, columns: Mapping[str, Values], repeated: float) -> Plan:
    """Return the plan with a note if rows seem to be doubled, as by a join: some may be in both parts."""
    telling = max(_read(plan), key=lambda each: each.distinct)
    if repeated <= _DOUBLED_SHARE or telling.distinct <= plan.rows * (1 - repeated) / 2:
        return plan
    shuffled = np.random.default_rng(0).permutation(columns[telling.name])
    if _repeated(plan, {**columns, telling.name: shuffled}) > _SHARE_BY_CHANCE * repeated:
        return plan
    note = (
        f"{repeated:.0%} of the rows repeat another, also in {telling.name}, which has {telling.distinct:,} "
        "different values. If a join or an export doubled them, remove them and start again: rows that are "
        "in both parts make the metrics too good."
    )
    return replace(plan, notes=(*plan.notes, note))


def _repeated(plan: Plan, columns: Mapping[str, Values]) -> float:
    return repeated_share([columns[each.name] for each in _read(plan)])


def _read(plan: Plan) -> list[Facts]:
    return [each.facts for each in plan.decisions if each.role is not Role.LEFT_OUT]


def _with_repeats(split: Split, gate: Mapping[str, float], told: str) -> Split:
    separator = ("; " if ":" in split.why else ": ") if told else ""
    return replace(split, gate={**split.gate, **gate}, why=f"{split.why}{separator}{told}")


def repeated_share(columns: list[Values]) -> float:
    """Return the share of rows that repeat an earlier row, 0 to 1."""
    rows = len(columns[0])
    mixed = np.zeros(rows, dtype=np.uint64)
    for column in columns:
        codes = categories(column if column.dtype == object else np.nan_to_num(column, nan=np.inf))
        mixed = (mixed ^ codes.astype(np.uint64)) * _MIXER
        mixed ^= mixed >> np.uint64(29)
    return 1 - len(np.unique(mixed)) / rows if rows else 0.0


def _identity(plan: Plan) -> Decision | None:
    """Return a column that is not a feature and is different in every row, or None."""
    for decision in plan.with_role(Role.LEFT_OUT):
        facts = decision.facts
        is_key = not facts.is_list and (facts.is_whole or facts.kind == "text")
        if is_key and not facts.missing and facts.distinct == facts.rows and facts.words < 2:
            return decision
    return None
