"""Finds violations of the schema, with numbers and with the edit of the schema that would accept them."""

from collections.abc import Iterator, Sequence

from slipway.components.data_gate.finding import Edit, Finding, RowQuery
from slipway.components.data_gate.rules.anomaly_group import AnomalyGroup, Context
from slipway.components.data_gate.rules.domain import outside_domain, outside_range
from slipway.components.data_gate.schema import Anomaly
from slipway.components.data_gate.statistics import FeatureStatistics

_TEXTS = "ENUM_TYPE_UNEXPECTED_STRING_VALUES"
_RANGES = ("INT_TYPE_SMALL_INT", "INT_TYPE_BIG_INT", "FLOAT_TYPE_SMALL_FLOAT", "FLOAT_TYPE_BIG_FLOAT")
_LOST = "SCHEMA_MISSING_COLUMN"
_NEW = "SCHEMA_NEW_COLUMN"
# The rule about missing values reports these anomalies, with numbers.
_ABOUT_PRESENCE = (
    "FEATURE_TYPE_LOW_FRACTION_PRESENT", "FEATURE_TYPE_LOW_NUMBER_PRESENT", "FEATURE_TYPE_LOW_NUMBER_VALUES",
    "FEATURE_TYPE_NOT_PRESENT", "FEATURE_TYPE_NO_VALUES", "INVALID_FEATURE_SHAPE",
)  # fmt: skip


def find_anomalies(anomalies: Sequence[Anomaly], context: Context) -> Iterator[Finding]:
    """Return one finding per feature and kind of anomaly, over all splits."""
    groups: dict[tuple[str, str], list[Anomaly]] = {}
    for anomaly in anomalies:
        kind = "range" if anomaly.type in _RANGES else anomaly.type
        groups.setdefault((anomaly.feature, kind), []).append(anomaly)
    for (feature, kind), found in groups.items():
        if kind in _ABOUT_PRESENCE and feature in context.already_reported:
            continue
        finding = _finding(kind, AnomalyGroup(found, context))
        if finding is not None:
            yield finding


def _finding(kind: str, group: AnomalyGroup) -> Finding | None:
    if kind == _TEXTS:
        return outside_domain(group)
    if kind == "range":
        return outside_range(group)
    if kind == _LOST:
        # A lost column has no rows to show.
        return Finding(
            rule="schema",
            feature=group.feature,
            splits=group.splits,
            what="the schema has this column, the data does not",
            remedy=group.remedy("put the column back", f"mark {group.feature} as DEPRECATED"),
            edits=(Edit("deprecate", group.feature),) if group.context.schema_file else (),
            stops=group.stops,
        )
    if kind == _NEW:
        type_name = _type(group.statistics)
        return Finding(
            rule="schema",
            feature=group.feature,
            splits=group.splits,
            what="the data has this column, the schema does not",
            remedy=group.remedy(
                "leave it out with data.columns", f"add the feature {group.feature} ({type_name})"
            ),
            edits=(Edit("add_feature", group.feature, text=type_name),) if group.context.schema_file else (),
            query=RowQuery(group.feature),
            stops=group.stops,
        )
    return group.tfdv_finding()


def _type(found: Sequence[FeatureStatistics]) -> str:
    kinds = {feature.kind for feature in found}
    return "FLOAT" if "float" in kinds else "INT" if kinds == {"int"} else "BYTES"
