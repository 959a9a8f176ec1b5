"""Checks that the label is present, not constant, and distributed as before and alike in all splits."""

import math
from collections.abc import Iterator, Mapping, Sequence

from slipway.components.data_gate.finding import Finding, RowQuery, advice_to_raise, limit_words, plain
from slipway.components.data_gate.rule_limits import Limits, key
from slipway.components.data_gate.rules.distances import (
    jensen_shannon,
    jensen_shannon_by_chance,
    l_infinity,
    l_infinity_by_chance,
)
from slipway.components.data_gate.rules.distribution_limits import TRAIN
from slipway.components.data_gate.rules.missing import missing_rows
from slipway.components.data_gate.rules.risen_values import numbers_moved, texts_moved
from slipway.components.data_gate.statistics import FeatureStatistics, Statistics

_MORE_ROWS = "raise statistics.sample_rate"


def find_label_faults(
    statistics: Statistics, reference: Statistics, label: str, limits: Limits, *, is_needed: bool = False
) -> Iterator[Finding]:
    """Find faults of the label.

    Args:
        reference: the statistics to compare with; empty if there are none.
        label: the raw column that the label comes from.
        limits: uses `max_label_missing_share` and `max_label_shift`.
        is_needed: whether Transform cannot read a row without the label; then no limit allows such a row.
    """
    found = {split: each.features[label] for split, each in statistics.items() if label in each.features}
    if not found:
        yield Finding("label", label, (), "no split has this column", remedy="data.label names the column")
        return
    for split, feature in found.items():
        yield from _missing(feature, split, 0.0 if is_needed else limits.max_label_missing_share, is_needed)
    constant = {split: feature for split, feature in found.items() if _is_constant(feature)}
    if constant:
        others = {split: each for split, each in found.items() if split not in constant and each.present}
        values = {_only_value(each) for each in constant.values()}
        if others or len(values) > 1:
            for split, feature in constant.items():
                value = _only_value(feature)
                unlike = {other for other, each in constant.items() if _only_value(each) != value}
                yield _one_sided(
                    feature, split, [other for other in found if other in unlike | others.keys()]
                )
        else:
            yield _constant(label, constant)
        return  # a finding about a shift would repeat this
    if TRAIN not in found:
        return
    if TRAIN in reference and label in reference[TRAIN].features:
        yield from _shift(
            found[TRAIN], reference[TRAIN].features[label], (TRAIN,), "in the reference", limits
        )
    for split, feature in found.items():
        if split != TRAIN:
            yield from _shift(feature, found[TRAIN], (split,), f"in {TRAIN}", limits)


def _missing(feature: FeatureStatistics, split: str, limit: float, is_needed: bool) -> Iterator[Finding]:
    if feature.missing_share > limit:
        name = key("max_label_missing_share")
        others = (
            "the schema gives the label a shape, so rows without it cannot be read"
            if is_needed
            else f"if preprocessing_fn handles them, set {name} above "
            f"{limit_words(feature.missing_share, decimals=4)}"
        )
        yield Finding(
            rule="label",
            feature=feature.name,
            splits=(split,),
            what=f"{missing_rows(feature)} no label",
            measured=feature.missing_share,
            limit=limit,
            key="" if is_needed else name,
            remedy="label these rows; if their labels come late, run again once they are there"
            if feature.missing_share == 1  # to leave all out would leave nothing
            else "label these rows, or leave them out of training and evaluation: data.unlabelled_rows: "
            f"leave_out; {others}",
            is_final=is_needed,
            query=RowQuery(feature.name, is_missing=True),
        )


def _is_constant(feature: FeatureStatistics) -> bool:
    if not feature.present:
        return False
    return feature.min == feature.max if feature.is_number else feature.unique == 1


def _only_value(feature: FeatureStatistics) -> str:
    return plain(feature.min) if feature.is_number else f'"{next(iter(feature.counts))}"'


def _one_sided(feature: FeatureStatistics, split: str, elsewhere: Sequence[str]) -> Finding:
    """Return a finding about a split with a single label: the rows of a rare class may all fall into others.

    Args:
        elsewhere: the splits that have other labels.
    """
    labels, remedy = "labels", ""
    if feature.is_sampled:
        labels, remedy = "labels looked at", f"{_MORE_ROWS}; or "
    return Finding(
        rule="label",
        feature=feature.name,
        splits=(split,),
        what=f"all {feature.present:,} {labels} are {_only_value(feature)}; rows with another label all fell "
        f"into {' and '.join(elsewhere)}",
        remedy=f"{remedy}split the rows differently, with data.split_by (as {{row: true}}) or data.split; or "
        "collect more rows of the other label",
        query=RowQuery(feature.name),
    )


def _constant(label: str, found: dict[str, FeatureStatistics]) -> Finding:
    value = _only_value(next(iter(found.values())))
    rows = sum(each.present for each in found.values())
    labels, remedy = "labels", ""
    if any(each.is_sampled for each in found.values()):
        labels, remedy = "labels looked at", f"; if other rows have another, {_MORE_ROWS}"
    return Finding(
        rule="label",
        feature=label,
        splits=tuple(found),
        what=f"all {rows:,} {labels} are {value}: there is nothing to learn",
        remedy=f"check what fills this column, and data.label{remedy}",
        query=RowQuery(label),
    )


def _shift(
    now: FeatureStatistics, then: FeatureStatistics, splits: tuple[str, ...], there: str, limits: Limits
) -> Iterator[Finding]:
    rows = (now.present, then.present)
    name = key("max_label_shift")
    ours, theirs = _counts(now), _counts(then)
    if now.is_number and then.is_number and not (ours and theirs):
        if now.distribution is None or then.distribution is None:
            return
        distance, cells = jensen_shannon(now.distribution, then.distribution)
        chance = jensen_shannon_by_chance(cells, rows)
        if distance <= limits.max_label_shift + chance:
            return
        words, query = numbers_moved(now, then, there=there)
        what = f"the mean is {now.mean:.4g}, {then.mean:.4g} {there}; {words}: Jensen-Shannon {distance:.3f}"
    else:
        sums = _sum(now, ours), _sum(then, theirs)
        distance, value = l_infinity(ours, theirs, sums)
        shares = [
            each.get(value, 0.0) / max(whole, 1) for each, whole in zip((ours, theirs), sums, strict=True)
        ]
        chance = l_infinity_by_chance(sum(shares) / 2, rows)
        if distance <= limits.max_label_shift + chance:
            return
        what, risen = texts_moved(ours, theirs, value, sums=sums, there=there, of="labels")
        query = RowQuery(now.name, values=(risen,))
        if now.is_number and _is_binary(now):
            query = RowQuery(now.name, within=(0.5, None) if risen == "1" else (None, 0.5))
        elif now.is_number and then.is_number:
            query = RowQuery(now.name, within=(int(risen) - 0.5, int(risen) + 0.5))
    yield Finding(
        rule="label",
        feature=now.name,
        splits=splits,
        what=what,
        measured=distance,
        limit=limits.max_label_shift,
        key=name,
        remedy=f"find out why the labels shifted; if correct, {advice_to_raise(name, distance)}",
        query=query,
    )


def _is_binary(feature: FeatureStatistics) -> bool:
    """Return True if all labels are 0 or 1, also as fractions: files often write 1.0."""
    if feature.min < 0 or feature.max > 1:
        return False
    # Among numbers between 0 and 1 with this mean, only zeros and ones vary as much.
    most = feature.mean * (1 - feature.mean)
    return feature.kind == "int" or (
        feature.std_dev is not None and math.isclose(feature.std_dev**2, most, abs_tol=1e-6)
    )


def _counts(feature: FeatureStatistics) -> dict[str, float]:
    """Return the count of each label; empty if labels are numbers of which these are not known.

    For labels 0 and 1 the counts follow from the mean.
    """
    if feature.is_number and _is_binary(feature):
        return {"1": feature.mean * feature.values, "0": (1 - feature.mean) * feature.values}
    return dict(feature.whole_counts if feature.is_number else feature.counts)


def _sum(feature: FeatureStatistics, counts: Mapping[str, float]) -> float:
    """Return the number of all labels: of texts, the rarest are not among the counts."""
    return sum(counts.values()) if feature.is_number else feature.counted
