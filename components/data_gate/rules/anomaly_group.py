"""The anomalies of one kind in one feature, with what all rules about anomalies share."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from slipway.components.data_gate.finding import Finding, RowQuery
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.schema import Anomaly, FeatureSchema
from slipway.components.data_gate.statistics import FeatureStatistics, Statistics
from slipway.components.data_profile.columns import Column

_RANK = {"warning": 1, "error": 2}


@dataclass(frozen=True, slots=True)
class Context:
    """The inputs that all findings about one data set share.

    Attributes:
        limits: uses `anomalies` and `max_out_of_domain_share`.
        schema_file: the user's name for the schema file; empty if the schema is inferred from the data.
        sample: some rows of the data, by column.
        already_reported: features whose missing values have been reported.
    """

    statistics: Statistics
    schema: Mapping[str, FeatureSchema]
    limits: Limits
    schema_file: str
    sample: Mapping[str, Column] = field(default_factory=dict)
    already_reported: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class AnomalyGroup:
    """The anomalies of one kind that ExampleValidator found in one feature, over all splits.

    Attributes:
        anomalies: at least one anomaly; all are of the same feature.
    """

    anomalies: Sequence[Anomaly]
    context: Context

    @property
    def feature(self) -> str:
        """The name of the column; empty for the data as a whole."""
        return self.anomalies[0].feature

    @property
    def allowed(self) -> FeatureSchema | None:
        """The schema of the feature; None if the schema does not have it."""
        return self.context.schema.get(self.feature)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits in which the anomalies were found."""
        return tuple(dict.fromkeys(anomaly.split for anomaly in self.anomalies))

    @property
    def statistics(self) -> list[FeatureStatistics]:
        """The feature's statistics in each of these splits that has the feature."""
        splits = (self.context.statistics.get(split) for split in self.splits)
        return [split.features[self.feature] for split in splits if split and self.feature in split.features]

    @property
    def stops(self) -> bool:
        """Whether anomalies of this severity stop the run, by the limit `anomalies`."""
        worst = max(_RANK[anomaly.severity] for anomaly in self.anomalies)
        least = self.context.limits.anomalies
        return least != "none" and worst >= _RANK[least]

    def remedy(self, otherwise: str, edit: str) -> str:
        """Return the advice `otherwise`, and if the user has a schema file, also the `edit` that it needs."""
        if not self.context.schema_file:
            return f"{otherwise}; the schema is inferred from the data itself (schema: null)"
        return f"{otherwise}, or in {self.context.schema_file}: {edit}"

    def tfdv_finding(self) -> Finding:
        """Return a finding in TFDV's own words, for anomalies about which no rule can say more."""
        anomaly = self.anomalies[0]
        return Finding(
            rule="schema",
            feature=self.feature,
            splits=self.splits,
            what=f"{anomaly.short[:1].lower()}{anomaly.short[1:]}: {anomaly.description.strip()}",
            remedy="correct the data, or the schema",
            query=RowQuery(self.feature) if self.feature else None,
            stops=self.stops,
        )
