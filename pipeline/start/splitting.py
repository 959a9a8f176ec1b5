"""Chooses how rows are split, and why: by time, by group, by ID, or by position in the file. Pure.

Rows that are similar because they are about the same person, or adjacent in time, must not be in both splits.
Rows that are equal by chance must be split like all others.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from slipway.components.counted_words import agreeing, counted
from slipway.components.data_profile.columns import categories, is_missing
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.deciding import NO_ID_NAME, Decision, Plan, Role
from slipway.pipeline.start.facts import Facts
from slipway.pipeline.start.panels import MOST_MISSING, find_panel, identifies_small_groups

Values = npt.NDArray[Any]

# Above this share of rows that repeat another, equal rows are not a coincidence.
COARSE_SHARE = 0.01
_GROUP_NAME = re.compile(
    r"(^|[_\s.-])(id|uuid|guid|key|nr|no|number|user|person|customer|client|patient|subject|household|session"
    r"|account|e-?mail)$"
    r"|(?-i:[a-z](Id|ID|Nr|No)$)",  # but not amount_paid
    re.IGNORECASE,
)
_TIME_NAME = re.compile(
    r"date|time|day|month|week|timestamp|(^|_)(at|ts)$|(?-i:[a-z](At|Ts|TS)$)", re.IGNORECASE
)
_NO_TIME_NAME = re.compile(r"birth|born|dob", re.IGNORECASE)
_LEAST_MOMENTS = 20
_SORTED_SHARE = 0.99
# Of the rows' own time, few are missing; a date that many rows lack, such as that of a return, is another.
_FEW_WITHOUT = 0.05
_MOVED_SHARE = 0.2
# An odd multiplier that mixes the codes of the columns into one hash.
_MIXER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Split:
    """The rule that decides a row's split.

    Attributes:
        by: `data.split_by`; empty: by a hash of the whole row.
        why: the reason, as text; may be empty.
        gate: limits of the data gate that must be raised for this way of splitting.
        unit_count: the number of units that are assigned to a split, each with all of its rows.
        keeps_groups_together: whether rows that belong together, such as those of a person or a time, stay in
            one split.
        present_shares: for a split by time, the smaller of the shares of rows that have a value in the two
            splits, by column: a column may have begun, or ended, meanwhile.
    """

    by: Mapping[str, object] = field(default_factory=dict)
    why: str = ""
    gate: Mapping[str, float] = field(default_factory=dict)
    unit_count: int = 0
    keeps_groups_together: bool = False
    present_shares: Mapping[str, float] = field(default_factory=dict)

    @property
    def column(self) -> str | None:
        """The column that decides a row's split, which need not be a feature; None if none does."""
        found = self.by.get("key") or self.by.get("time")
        return None if found is None else str(found)


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
    by_time, moved = _by_time(plan, columns, columns[plan.label.name]) if is_whole else (None, "")
    if by_time:
        # As a category, an id may stand for what lasts, such as a shop; as a number, it means nothing.
        plan = _without_ids(plan, [Role.NUMBER, Role.AMOUNT])
        plan, by_time = _with_shares(plan, by_time, columns)
        return plan, _with_repeats(by_time, *_repeats(plan, columns))
    if moved:
        plan = replace(plan, notes=(*plan.notes, moved))
    grouped, by_group = _by_group(plan, columns)
    if by_group:
        grouped = _without_ids(grouped, [Role.NUMBER, Role.AMOUNT])
        return grouped, _with_repeats(by_group, *_repeats(grouped, columns))
    plan = _told_of_ids(plan)
    gate, told = _repeats(plan, columns)
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
        is_feature = decision.role not in (Role.LABEL, Role.WEIGHT, Role.LEFT_OUT)
        if is_feature and may_miss and is_missing(columns[name])[known].all():
            why = f"no value in a row that has {plan.label.name}, so nothing can be learned of it"
            left = Decision(decision.facts, Role.LEFT_OUT, why)
        decisions.append(left)
    if all(each.role in (Role.LABEL, Role.WEIGHT, Role.LEFT_OUT) for each in decisions):
        raise UsageError(
            f"No column is left to predict {plan.label.name} from: in the rows that have it, all others are "
            "empty.",
            hint=f"add columns to the file that may help to predict {plan.label.name}",
        )
    return replace(plan, decisions=tuple(decisions))


def _repeats(plan: Plan, columns: Mapping[str, Values]) -> tuple[dict[str, float], str]:
    """Return the limit that rows which repeat others need, and why; both empty if few do."""
    used = [d.facts.name for d in plan.decisions if d.role is not Role.LEFT_OUT]
    repeated = repeated_share([columns[name] for name in used])
    if repeated <= COARSE_SHARE:
        return {}, ""
    told = f"{repeated:.0%} of the rows repeat another in the columns that are read"
    return {"max_duplicate_share": round(min(repeated + 0.1, 1.0), 2)}, told


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


def _by_time(plan: Plan, columns: Mapping[str, Values], labels: Values) -> tuple[Split | None, str]:
    """Return the split by time, or None and a note that says why a date column does not decide the split.

    Rows without a label, such as the latest ones, whose answer is not known yet, are in neither part.
    """
    known = np.array([label is not None and label == label for label in labels.tolist()], dtype=np.bool_)
    labels = labels[known]
    moved = ""
    orders = {d.facts.name: _is_sorted(_present(columns[d.facts.name])) for d in plan.with_role(Role.MOMENT)}
    # Rows are in the order of when they happened rather than of when they were changed, or are due.
    for decision in sorted(plan.with_role(Role.MOMENT), key=lambda each: not orders[each.facts.name]):
        name, facts = decision.facts.name, decision.facts
        if facts.distinct < _LEAST_MOMENTS or _NO_TIME_NAME.search(name):
            continue
        if not (_TIME_NAME.search(name) or orders[name]):
            continue
        if without := facts.missing + sum(facts.missing_value_placeholders.values()):
            if without <= _FEW_WITHOUT * facts.rows:
                moved = moved or (
                    f"{name} does not decide the split, as {counted(without, 'row')} "
                    f"{agreeing(without, 'have')} no date there: rows of one time are in both parts. To "
                    "judge the model by the latest rows, remove or correct these, and start again."
                )
            continue
        moments = columns[name][known]
        start = np.sort(moments)[len(moments) * 2 // 3]
        first = str(start)[:10] if decision.facts.kind == "text" else int(start)
        later = np.asarray(moments >= first, dtype=np.bool_)
        if not _has_enough(later, labels, is_number=plan.task == "regression"):
            moved = moved or (
                f"{name} does not decide the split: rows from {first} on are more than half of all, or do "
                f"not have two values of {plan.label.name} that earlier rows have, too. The model will "
                "interpolate between known rows, and may fail on later ones (data.split_by in docs/data.md)."
            )
            continue
        if _moved(later, labels, is_number=plan.task == "regression"):
            # Nothing learned from the earlier rows could hold for the later ones.
            moved = moved or (
                f"Rows from {first} on have very different values of {plan.label.name} than earlier rows, so "
                f"{name} does not decide the split: the model will interpolate between known rows, and may "
                "fail on later ones (data.split_by in docs/data.md)."
            )
            continue
        why = f"by time: rows from {first} on are for evaluation, earlier ones for training"
        shares = dict.fromkeys(("max_skew_l_infinity", "max_skew_jensen_shannon", "max_label_shift"), 1.0)
        by = {"time": name, "starts": {"train": None, "eval": first}}
        return Split(by, why, shares, plan.rows, keeps_groups_together=True), ""
    return None, moved


def _with_shares(plan: Plan, split: Split, columns: Mapping[str, Values]) -> tuple[Plan, Split]:
    """Return the plan without the columns that have no value in the earlier part, and the others' shares.

    Args:
        split: a split by time.
    """
    starts = cast("Mapping[str, Any]", split.by["starts"])
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


def _by_group(plan: Plan, columns: Mapping[str, Values]) -> tuple[Plan, Split | None]:
    """Return the split by groups: by an ID column, or by the column that identifies the things of a panel."""
    no_features = (Role.LABEL, Role.WEIGHT, Role.LEFT_OUT)
    may_be = [
        d.facts
        for d in plan.decisions
        if d.role not in (Role.LABEL, Role.WEIGHT) and not d.is_kept and not d.facts.is_list
    ]
    named = [
        each for each in may_be if _names_groups(each.name) and identifies_small_groups(each, is_named=True)
    ]
    named = _widest_first(named, columns)
    panel = find_panel(may_be, columns) if not named else None
    for name in [each.name for each in named] or list(panel or ())[:1]:
        decision = next(each for each in plan.decisions if each.facts.name == name)
        if not any(d.role not in no_features and d != decision for d in plan.decisions):
            continue
        facts = decision.facts
        rows = f"{facts.present / facts.distinct:.1f} rows on average"
        over = f", in the order of {panel[1]}" if panel else ""
        why = f"identifies groups of {rows}{over}: it decides the split, and is not a feature"
        missing = f"; {counted(facts.missing, 'row')} without one, too" if facts.missing else ""
        left = Decision(facts, Role.LEFT_OUT, why)
        decisions = tuple(left if each == decision else each for each in plan.decisions)
        split = Split(
            {"key": facts.name},
            f"by {facts.name}: the rows of each of its {counted(facts.distinct, 'value')} stay "
            f"together{missing}",
            {},
            facts.distinct,
            keeps_groups_together=True,
        )
        return replace(plan, decisions=decisions), split
    return plan, None


def _names_groups(name: str) -> bool:
    return bool(_GROUP_NAME.search(name)) and not NO_ID_NAME.search(name)


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
        if _names_groups(each.facts.name)
        and not each.is_kept
        and identifies_small_groups(each.facts, is_named=True, most_missing=1.0)
    ]


def _without_ids(plan: Plan, roles: Collection[Role]) -> Plan:
    """Return the plan without the ids of small groups that have one of some roles, if a feature is left."""
    ids = _ids(plan, roles)
    no_features = (Role.LABEL, Role.WEIGHT, Role.LEFT_OUT)
    if all(each.role in no_features or each in ids for each in plan.decisions):
        return plan
    decisions = tuple(
        Decision(each.facts, Role.LEFT_OUT, f"identifies groups of {_rows_each(each)}: it is not a feature")
        if each in ids
        else each
        for each in plan.decisions
    )
    return replace(plan, decisions=decisions)


def _told_of_ids(plan: Plan) -> Plan:
    """Return the plan without ids of small groups, and notes that they don't decide the split.

    Too many rows lack one: all of these would be in one split.
    """
    roles = (Role.NUMBER, Role.AMOUNT, Role.CATEGORY)
    left = _without_ids(plan, roles)
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


def _identity(plan: Plan) -> Decision | None:
    """Return a column that is not a feature and is different in every row, or None."""
    for decision in plan.with_role(Role.LEFT_OUT):
        facts = decision.facts
        is_key = not facts.is_list and (facts.is_whole or facts.kind == "text")
        if is_key and not facts.missing and facts.distinct == facts.rows and facts.words < 2:
            return decision
    return None
