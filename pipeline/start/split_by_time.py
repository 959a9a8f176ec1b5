"""Decides whether the rows are split by time: the model is then judged by the latest ones. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from slipway.components.counted_words import agreeing, counted
from slipway.components.data_profile.columns import categories, is_missing
from slipway.pipeline.start.deciding import Decision, Plan, Role
from slipway.pipeline.start.facts import Facts
from slipway.pipeline.start.split_rule import Split

Values = npt.NDArray[Any]

_TIME_NAME = re.compile(
    r"date|time|day|month|week|timestamp|(^|[_ ])(at|ts)$|(?-i:[a-z](At|Ts|TS)$)", re.IGNORECASE
)
_NO_TIME_NAME = re.compile(r"birth|born|dob", re.IGNORECASE)
_LEAST_MOMENTS = 20
_SORTED_SHARE = 0.99
# Of the rows' own time, few are missing; a date that many rows lack, such as that of a return, is another.
_FEW_WITHOUT = 0.05
_MOVED_SHARE = 0.2


def split_by_time(plan: Plan, columns: Mapping[str, Values]) -> tuple[Split | None, str]:
    """Return the split by time, or None and a note that says why a date column does not decide the split.

    Rows without a label, such as the latest ones, whose answer is not known yet, are in neither part.
    """
    note = ""
    for facts in _times(plan, columns):
        split, why_not = _split_at_last_third(plan, facts, columns)
        if split:
            return split, ""
        note = note or why_not
    return None, note


def _times(plan: Plan, columns: Mapping[str, Values]) -> Iterator[Facts]:
    """Yield the columns that may say when a row happened, first those in whose order the rows are."""
    moments = [decision.facts for decision in plan.with_role(Role.MOMENT)]
    orders = {facts.name: _is_sorted(_present(columns[facts.name])) for facts in moments}
    # Rows are in the order of when they happened rather than of when they were changed, or are due.
    for facts in sorted(moments, key=lambda each: not orders[each.name]):
        is_time = not _NO_TIME_NAME.search(facts.name) and (
            _TIME_NAME.search(facts.name) or orders[facts.name]
        )
        if is_time and facts.distinct >= _LEAST_MOMENTS:
            yield facts


def _split_at_last_third(plan: Plan, facts: Facts, columns: Mapping[str, Values]) -> tuple[Split | None, str]:
    """Return the split by a column of times, or None and a note about it, which may be empty."""
    name, label = facts.name, plan.label.name
    if without := facts.missing + sum(facts.missing_value_placeholders.values()):
        if without > _FEW_WITHOUT * facts.rows:
            return None, ""
        return None, (
            f"{name} does not decide the split, as {counted(without, 'row')} "
            f"{agreeing(without, 'have')} no date there: rows of one time are in both parts. To "
            "judge the model by the latest rows, remove or correct these, and start again."
        )
    known = ~is_missing(columns[label])
    labels, moments = columns[label][known], columns[name][known]
    start = np.sort(moments)[len(moments) * 2 // 3]
    first = str(start)[:10] if facts.kind == "text" else int(start)
    later = np.asarray(moments >= first, dtype=np.bool_)
    if not _has_enough(later, labels, is_number=plan.task == "regression"):
        return None, (
            f"{name} does not decide the split: rows from {first} on are more than half of all, or do "
            f"not have two values of {label} that earlier rows have, too. The model will "
            "interpolate between known rows, and may fail on later ones (data.split_by in docs/data.md)."
        )
    if _moved(later, labels, is_number=plan.task == "regression"):
        # Nothing learned from the earlier rows could hold for the later ones.
        return None, (
            f"Rows from {first} on have very different values of {label} than earlier rows, so "
            f"{name} does not decide the split: the model will interpolate between known rows, and may "
            "fail on later ones (data.split_by in docs/data.md)."
        )
    why = f"by time: rows from {first} on are for evaluation, earlier ones for training"
    limits = dict.fromkeys(("max_skew_l_infinity", "max_skew_jensen_shannon", "max_label_shift"), 1.0)
    by = {"time": name, "starts": {"train": None, "eval": first}}
    return Split(by, why, limits, plan.rows, keeps_neighbours_together=True), ""


def with_shares(plan: Plan, split: Split, columns: Mapping[str, Values]) -> tuple[Plan, Split]:
    """Return the plan without the columns that have no value in the earlier part, and the others' shares.

    Args:
        split: a split by time.
    """
    starts = cast("Mapping[str, object]", split.by["starts"])
    first = starts["eval"]
    earlier = np.asarray(columns[str(split.by["time"])] < first, dtype=np.bool_)
    known = ~is_missing(columns[plan.label.name])
    shares: dict[str, float] = {}
    decisions = []
    for decision in plan.decisions:
        name, left = decision.facts.name, decision
        # The values of lists are digests here, also of empty ones.
        may_miss = decision.facts.missing and not decision.facts.is_list
        if may_miss and decision.role not in (Role.LABEL, Role.LEFT_OUT):
            there = ~is_missing(columns[name])
            found = [float(there[part & known].mean()) for part in (earlier, ~earlier)]
            shares[name] = min(found)
            if not found[0]:
                why = f"no value in a row before {first}, so nothing can be learned of it"
                left = Decision(decision.facts, Role.LEFT_OUT, why)
        decisions.append(left)
    used = {each.facts.name for each in decisions if each.role is not Role.LEFT_OUT}
    kept_leaks = {name: why for name, why in plan.kept_leaks.items() if name in used}
    plan = replace(plan, decisions=tuple(decisions), kept_leaks=kept_leaks)
    return plan, replace(split, present_shares=shares)


def _present(values: Values) -> Values:
    return values[~is_missing(values)]


def _is_sorted(moments: Values) -> bool:
    if len(moments) < _LEAST_MOMENTS:
        return False
    later, earlier = moments[1:], moments[:-1]
    return bool(max(np.mean(later >= earlier), np.mean(later <= earlier)) >= _SORTED_SHARE)


def _has_enough(later: npt.NDArray[np.bool_], labels: Values, *, is_number: bool) -> bool:
    """Whether the later part suits evaluation.

    It may have at most half of the rows, must hold at least two classes, and no class that the earlier part
    lacks. It begins at the last third of the rows; it is larger than a third if many rows share one moment.
    """
    if later.mean() > 0.5:
        return False
    if is_number:
        return True
    before, after = (set(labels[part].tolist()) for part in (~later, later))
    return after <= before and len(after) > 1


def _moved(later: npt.NDArray[np.bool_], labels: Values, *, is_number: bool) -> bool:
    """Whether the distribution of the label differs strongly between the earlier and the later rows."""
    if is_number:
        before, after = (labels[part] for part in (~later, later))
        return bool(abs(after.mean() - before.mean()) > before.std())
    codes = categories(labels)
    shares = [np.bincount(codes[part], minlength=codes.max() + 1) / part.sum() for part in (~later, later)]
    return bool(np.abs(shares[0] - shares[1]).max() > _MOVED_SHARE)
