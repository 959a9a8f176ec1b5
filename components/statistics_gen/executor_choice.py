"""Decides whether our executor supports a StatisticsGen node or TFX's own executor must run it."""

from collections.abc import Collection, Mapping

_EXAMPLES = "FORMAT_TF_EXAMPLE"
_FILES = "tfrecords_gzip"
# The parameters of StatisticsGen in TFX 1.21. Any other parameter belongs to a later TFX.
_KNOWN = frozenset(("stats_options_json", "exclude_splits", "sample_rate_by_split"))
OPTIONS = {
    "label_feature": "the lift of values is requested",
    "enable_semantic_domain_stats": "semantic domains are requested",
    "slice_sqls": "slices by SQL are requested",
    "_per_feature_weight_override": "single columns have weights of their own",
    "experimental_filter_read_paths": "only some paths are to be read",
    "two_schemas": "there is one schema in the StatsOptions and another as an input",
    "derived_features": "the schema has features that are derived from others",
}
"""Attributes of StatsOptions, or facts derived from them, that our executor does not support, each with the
reason to log."""


def reason_for_stock_executor(
    *,
    examples: tuple[str, str],
    has_patterns: bool,
    splits: Collection[str],
    parameters: Mapping[str, object],
    options: Mapping[str, object],
) -> str | None:
    """Return why TFX's own executor must run; None if ours gives the same result.

    Args:
        examples: the formats of the examples' payload and of their files.
        has_patterns: whether the examples have a custom file pattern for each split.
        options: the values of the attributes in `OPTIONS`.
    """
    if examples != (_EXAMPLES, _FILES):
        payload, files = examples
        return f"the examples are {payload} in {files}"
    if has_patterns:
        return "the examples have a pattern for each split"
    if not splits:
        return "no split is left"
    if further := sorted(name for name, value in parameters.items() if value and name not in _KNOWN):
        return f"{further[0]} is set"
    return next((why for name, why in OPTIONS.items() if options.get(name)), None)
