"""Chooses what decides a row's split, and why: time, a group, an id, or the row's place. Pure.

Rows that are alike because they are about the same person, or adjacent in time, must not be in both splits;
rows that are equal by chance must be split like all others.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.counted_words import counted
from slipway.components.data_profile.columns import categories
from slipway.pipeline.start.deciding import Decision, Plan, Role
from slipway.pipeline.start.panels import find_panel, has_rows_of_groups

Values = npt.NDArray[Any]

# Above this share of rows that repeat another, equal rows are not a coincidence.
COARSE_SHARE = 0.01
_GROUP_NAME = re.compile(
    r"(^|[_\s])(id|uuid|guid|key|nr|no|number|user|person|customer|client|patient|subject|household|session)$"
    r"|[a-z](Id|ID|Nr|No)$",
    re.IGNORECASE,
)
_TIME_NAME = re.compile(r"date|time|day|month|week|timestamp|(^|_)(at|ts)$", re.IGNORECASE)
_NO_TIME_NAME = re.compile(r"birth|born|dob", re.IGNORECASE)
_LEAST_MOMENTS = 20
_SORTED_SHARE = 0.99
_MOVED_SHARE = 0.2
# Odd numbers that mix the codes of the columns into one.
_MIXER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Split:
    """The column or rule that decides a row's split.

    Attributes:
        by: `data.split_by`; empty: the hash of the whole row.
        gate: limits of the data gate that this way of splitting exceeds by itself.
        units: how many things are dealt, each with all of its rows.
        keeps_neighbours: whether rows that belong together, as those of a person or a time, are on one side.
    """

    by: Mapping[str, object] = field(default_factory=dict)
    why: str = ""
    gate: Mapping[str, float] = field(default_factory=dict)
    units: int = 0
    keeps_neighbours: bool = False


def decide_split(plan: Plan, columns: Mapping[str, Values], *, is_whole: bool) -> tuple[Plan, Split]:
    """Chooses what decides a row's split.

    Returns:
        The plan, in which a column that names groups is no feature any more, and the choice.
    """
    by_time, moved = _by_time(plan, columns, columns[plan.label.name]) if is_whole else (None, "")
    if by_time:
        return plan, by_time
    if moved:
        plan = replace(plan, notes=(*plan.notes, moved))
    grouped, by_group = _by_group(plan, columns)
    if by_group:
        return grouped, by_group
    used = [d.facts.name for d in plan.decisions if d.role is not Role.LEFT_OUT]
    repeated = repeated_share([columns[name] for name in used])
    gate = {"max_duplicate_share": round(min(repeated + 0.1, 1.0), 2)} if repeated > COARSE_SHARE else {}
    told = f": {repeated:.0%} of the rows repeat another in what is read" if gate else ""
    if identity := _identity(plan):
        name = identity.facts.name
        return plan, Split(
            {"key": name}, f"by a hash of {name}, which is not a feature{told}", gate, plan.rows
        )
    if gate:
        return plan, Split({"row": True}, f"by a hash of the row's place in its file{told}", gate, plan.rows)
    return plan, Split(units=plan.rows)


def repeated_share(columns: list[Values]) -> float:
    """The share of rows that repeat an earlier one, 0 to 1."""
    rows = len(columns[0])
    mixed = np.zeros(rows, dtype=np.uint64)
    for column in columns:
        codes = categories(column if column.dtype == object else np.nan_to_num(column, nan=np.inf))
        mixed = (mixed ^ codes.astype(np.uint64)) * _MIXER
        mixed ^= mixed >> np.uint64(29)
    return 1 - len(np.unique(mixed)) / rows if rows else 0.0


def _by_time(plan: Plan, columns: Mapping[str, Values], labels: Values) -> tuple[Split | None, str]:
    """The split by time, or in words why there is none although there are dates that could decide."""
    moved = ""
    for decision in plan.with_role(Role.MOMENT):
        name = decision.facts.name
        if decision.facts.missing or decision.facts.distinct < _LEAST_MOMENTS or _NO_TIME_NAME.search(name):
            continue
        moments = columns[name]
        if not (_TIME_NAME.search(name) or _is_sorted(moments)):
            continue
        start = np.sort(moments)[len(moments) * 2 // 3]
        first = str(start)[:10] if decision.facts.kind == "text" else int(start)
        later = np.asarray(moments >= first, dtype=np.bool_)
        if not _has_enough(later, labels, is_number=plan.task == "regression"):
            continue
        if _moved(later, labels, is_number=plan.task == "regression"):
            # Nothing that was learned from the earlier rows could hold for the later ones.
            moved = moved or (
                f"Rows from {first} on have a very different {plan.label.name} than earlier ones, so {name} "
                "does not decide the split: such a model would fill gaps between known rows, and may know "
                "nothing of what comes next (data.split_by in docs/data.md)."
            )
            continue
        why = f"by time: rows from {first} on are for evaluation, earlier ones for training"
        shares = dict.fromkeys(("max_skew_l_infinity", "max_skew_jensen_shannon", "max_label_shift"), 1.0)
        by = {"time": name, "starts": {"train": None, "eval": first}}
        return Split(by, why, shares, plan.rows, keeps_neighbours=True), ""
    return None, moved


def _is_sorted(moments: Values) -> bool:
    later, earlier = moments[1:], moments[:-1]
    return bool(max(np.mean(later >= earlier), np.mean(later <= earlier)) >= _SORTED_SHARE)


def _has_enough(later: npt.NDArray[np.bool_], labels: Values, *, is_number: bool) -> bool:
    """Whether the later part has at most half of the rows and two classes, and the earlier part every class.

    A third is judged by at least, that is where it begins; more where many rows are of one moment.
    """
    if later.mean() > 0.5:
        return False
    if is_number:
        return True
    known = np.array([label is not None and label == label for label in labels.tolist()])
    before, after = (set(labels[known & part].tolist()) for part in (~later, later))
    return after <= before and len(after) > 1


def _moved(later: npt.NDArray[np.bool_], labels: Values, *, is_number: bool) -> bool:
    """Whether the later rows have very different labels from the earlier ones."""
    if is_number:
        before, after = (labels[part & ~np.isnan(labels)] for part in (~later, later))
        return bool(abs(after.mean() - before.mean()) > before.std())
    known = np.array([label is not None and label == label for label in labels.tolist()])
    codes = categories(labels[known])
    shares = [
        np.bincount(codes[part[known]], minlength=codes.max() + 1) / part[known].sum()
        for part in (~later, later)
    ]
    return bool(np.abs(shares[0] - shares[1]).max() > _MOVED_SHARE)


def _by_group(plan: Plan, columns: Mapping[str, Values]) -> tuple[Plan, Split | None]:
    """The split by groups: by an id column, or by a column that a panel follows over time."""
    may_be = [d.facts for d in plan.decisions if d.role is not Role.LABEL and not d.is_kept]
    named = [each for each in may_be if _GROUP_NAME.search(each.name) and has_rows_of_groups(each)]
    panel = find_panel(may_be, columns) if not named else None
    for name in [each.name for each in named] or list(panel or ())[:1]:
        decision = next(each for each in plan.decisions if each.facts.name == name)
        if not any(d.role not in (Role.LABEL, Role.LEFT_OUT) and d != decision for d in plan.decisions):
            continue
        facts = decision.facts
        rows = f"{facts.present / facts.distinct:.1f} rows on average"
        over = f", in the order of {panel[1]}" if panel else ""
        why = f"names a group of {rows}{over}: it decides the split, and is not a feature"
        left = Decision(facts, Role.LEFT_OUT, why)
        decisions = tuple(left if each == decision else each for each in plan.decisions)
        split = Split(
            {"key": facts.name},
            f"by {facts.name}: the rows of each of its {counted(facts.distinct, 'value')} stay together",
            {},
            facts.distinct,
            keeps_neighbours=True,
        )
        return replace(plan, decisions=decisions), split
    return plan, None


def _identity(plan: Plan) -> Decision | None:
    """A column that is not a feature and differs in every row."""
    for decision in plan.with_role(Role.LEFT_OUT):
        facts = decision.facts
        if facts.kind != "float" and not facts.missing and facts.distinct == facts.rows and facts.words < 2:
            return decision
    return None
