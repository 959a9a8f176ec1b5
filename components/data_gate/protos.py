"""Converts TensorFlow Metadata's messages to the plain data that the rules judge."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from slipway.components.data_gate.schema import Anomaly, FeatureSchema
from slipway.components.data_gate.statistics import Distribution, FeatureStatistics, Kind, SplitStatistics
from slipway.components.data_profile.all_rows import of_all_rows

_KINDS: dict[int, Kind] = {
    statistics_pb2.FeatureNameStatistics.INT: "int",
    statistics_pb2.FeatureNameStatistics.FLOAT: "float",
    statistics_pb2.FeatureNameStatistics.STRING: "text",
}
_SEVERITIES = {anomalies_pb2.AnomalyInfo.WARNING: "warning", anomalies_pb2.AnomalyInfo.ERROR: "error"}


def split_statistics(data: bytes, *, rows: int | None = None) -> SplitStatistics:
    """Parse the statistics of one split.

    Args:
        data: the content of `FeatureStats.pb`, as StatisticsGen writes it.
        rows: the number of rows of the split if the statistics cover a sample; None if they cover all rows.

    Raises:
        ComponentError: the file holds statistics of slices only.
    """
    whole = of_all_rows(data)
    looked_at = int(whole.num_examples)
    is_sampled = rows is not None and rows > looked_at
    features = (_feature(feature, looked_at, is_sampled=is_sampled) for feature in whole.features)
    return SplitStatistics(
        rows=looked_at if rows is None else rows,
        features={feature.name: feature for feature in features},
        sampled=None if rows is None else looked_at,
    )


def schema_features(text: str) -> dict[str, FeatureSchema]:
    """Parse a schema in protobuf's text format; return its features by name."""
    schema = text_format.Parse(text, schema_pb2.Schema())
    domains = {domain.name: frozenset(domain.value) for domain in schema.string_domain}
    return {feature.name: _schema_of(feature, domains) for feature in schema.feature}


def anomalies(data: bytes, *, split: str) -> Iterator[Anomaly]:
    """Read the anomalies that ExampleValidator wrote to `SchemaDiff.pb` for one split."""
    found = anomalies_pb2.Anomalies.FromString(data)
    infos: Iterable[tuple[str, Any]] = found.anomaly_info.items()
    whole = [("", found.dataset_anomaly_info)] if found.HasField("dataset_anomaly_info") else []
    for name, info in [*infos, *whole]:
        for reason in info.reason:
            yield Anomaly(
                # The key of a name with a point or brackets has quotes around it.
                feature=".".join(info.path.step) or name,
                split=split,
                type=anomalies_pb2.AnomalyInfo.Type.Name(reason.type),
                severity=_SEVERITIES.get(info.severity, "warning"),
                short=reason.short_description,
                description=reason.description,
            )


def _feature(feature: Any, rows: int, *, is_sampled: bool) -> FeatureStatistics:
    numbers = feature.WhichOneof("stats") == "num_stats"
    stats = feature.num_stats if numbers else getattr(feature, feature.WhichOneof("stats"))
    common = stats.common_stats
    # A row may have the column but no value in it: this is how Ingest writes an empty cell.
    present = min(common.num_non_missing, common.tot_num_values)
    if common.max_num_values > 1:  # of lists, at least those rows are empty of which a whole bucket is
        lengths = common.num_values_histogram.buckets
        present = min(
            present, common.num_non_missing - sum(b.sample_count for b in lengths if not b.high_value)
        )
    base: dict[str, Any] = {
        "name": ".".join(feature.path.step) or feature.name,
        "kind": _KINDS.get(feature.type, "other"),
        "rows": rows,
        "is_sampled": is_sampled,
        "present": int(present),
        "values": int(common.tot_num_values),
        "most_values": int(common.max_num_values),
    }
    if numbers:
        nan = max((int(histogram.num_nan) for histogram in stats.histograms), default=0)
        if common.max_num_values <= 1 or nan >= common.tot_num_values:
            base["present"] = max(base["present"] - nan, 0)
        # In lists, each NaN is counted, not its row: a row whose list holds one still has a value.
        has = base["present"] > 0
        distribution = _distribution(stats.histograms) if has else None
        return FeatureStatistics(
            **base,
            min=stats.min,
            max=stats.max,
            mean=stats.mean,
            std_dev=stats.std_dev,
            distribution=distribution,
            whole_counts=_whole_counts(stats.histograms, distribution),
        )
    counts = getattr(getattr(stats, "rank_histogram", None), "buckets", ())
    return FeatureStatistics(
        **base,
        unique=int(getattr(stats, "unique", 0)),
        counts={bucket.label: bucket.sample_count for bucket in counts},
    )


def _distribution(histograms: Iterable[Any]) -> Distribution | None:
    # TFDV gives a histogram of equal widths and one of equal weights; the latter shows where most values are.
    found = [h for h in histograms if h.type == statistics_pb2.Histogram.QUANTILES] or list(histograms)
    buckets = [b for b in found[0].buckets if b.sample_count > 0] if found else []
    if not buckets:
        return None
    reached = np.cumsum([0.0, *(bucket.sample_count for bucket in buckets)])
    points = np.array([[bucket.low_value, bucket.high_value] for bucket in buckets]).ravel()
    below = np.stack([reached[:-1], reached[1:]], axis=1).ravel() / reached[-1]
    finite = points[np.isfinite(points)]
    if not finite.size:
        return None
    # Infinite numbers count as the least and the greatest of the others: without a distribution, one of them
    # would spare the column every comparison.
    return Distribution(points=np.clip(points, finite.min(), finite.max()), below=below)


def _whole_counts(histograms: Iterable[Any], distribution: Distribution | None) -> dict[str, float]:
    """Return how often each whole number occurs, if there is no other number, and at most ten in a row."""
    if distribution is None or (np.mod(distribution.points, 1) != 0).any():
        return {}
    # Each of the ten buckets of the histogram of equal widths holds at most one whole number.
    found = next((h.buckets for h in histograms if h.type == statistics_pb2.Histogram.STANDARD), ())
    counts: dict[str, float] = {}
    for place, bucket in enumerate(found):
        if not math.isfinite(bucket.high_value - bucket.low_value):
            return {}
        number = math.floor(bucket.high_value)
        if bucket.high_value - bucket.low_value >= 1:
            return {}
        # A bucket holds its upper end, and the first its lower end, too. TFDV takes what lies between two of
        # its quantiles for spread evenly, so that a little is where no number is.
        if number > bucket.low_value or (not place and number == bucket.low_value):
            counts[str(number)] = bucket.sample_count
    return counts


def _schema_of(feature: Any, domains: dict[str, frozenset[str]]) -> FeatureSchema:
    kind = feature.WhichOneof("domain_info")
    low = high = None
    if kind in ("int_domain", "float_domain"):
        bounds = getattr(feature, kind)
        low = bounds.min if bounds.HasField("min") else None
        high = bounds.max if bounds.HasField("max") else None
    domain = None
    if kind == "domain":
        domain = domains.get(feature.domain)
    elif kind == "string_domain":
        domain = frozenset(feature.string_domain.value)
    constraints = feature.distribution_constraints
    return FeatureSchema(
        name=feature.name,
        type=schema_pb2.FeatureType.Name(feature.type) if feature.type else "",
        domain=domain,
        domain_name=feature.domain if kind == "domain" else "",
        min_domain_mass=constraints.min_domain_mass if constraints.HasField("min_domain_mass") else 1.0,
        min=low,
        max=high,
        min_fraction=feature.presence.min_fraction,
        has_shape=feature.HasField("shape"),
    )
