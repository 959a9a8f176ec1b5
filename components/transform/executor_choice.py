"""Decides whether our executor supports a Transform node or TFX's own executor must run it."""

from collections.abc import Collection, Mapping

_EXAMPLES = "FORMAT_TF_EXAMPLE"
_FILES = "tfrecords_gzip"
# The parameters of Transform in TFX 1.21. Any other parameter belongs to a later TFX.
_KNOWN = frozenset(
    ("preprocessing_fn", "custom_config", "splits_config", "disable_statistics", "force_tf_compat_v1")
)


def reason_for_stock_executor(
    *,
    examples: Collection[tuple[str, str]],
    outputs: Collection[str],
    parameters: Mapping[str, object],
) -> str | None:
    """Return why TFX's own executor must run; None if ours gives the same result.

    Args:
        examples: for each artifact of examples, the formats of its payload and of its files.
        outputs: the keys of the node's input and output artifacts.
        parameters: the node's parameters.
    """
    if len(examples) != 1:
        return f"there are {len(examples)} artifacts of examples"
    for payload, files in examples:
        if (payload, files) != (_EXAMPLES, _FILES):
            return f"the examples are {payload} in {files}"
    if not parameters.get("disable_statistics"):
        return "statistics are requested"
    for key in ("analyzer_cache", "updated_analyzer_cache"):
        if key in outputs:
            return "an analyzer cache is requested"
    if parameters.get("force_tf_compat_v1"):
        return "force_tf_compat_v1 is set"
    if further := sorted(name for name, value in parameters.items() if value and name not in _KNOWN):
        return f"{further[0]} is set"
    return None
