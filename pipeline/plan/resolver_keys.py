"""Finds the run whose model is the baseline, and the keys for resolvers' fingerprints. Pure."""

from collections.abc import Collection, Iterable, Iterator

from slipway.pipeline.runs.record import RunRecord


def blessings_of(run: RunRecord) -> set[str]:
    """The addresses of the blessings that a run made, or took from its cache."""
    nodes = (node for node in run.nodes if not node.is_resolver)
    return {each["uri"] for node in nodes for each in node.outputs_of("ModelBlessing")}


def blessed_runs(
    runs: Iterable[RunRecord], *, workload: str, retired: Collection[str] = ()
) -> Iterator[RunRecord]:
    """The runs that blessed a model which may be a baseline; the first, of the newest first, is the baseline.

    Args:
        runs: in any order, which is kept; read no further than needed.
        workload: the pipeline's name.
        retired: addresses of blessings that a user has retired.
    """
    for run in runs:
        if run.workload == workload and run.blessed and blessings_of(run).isdisjoint(retired):
            yield run


def baseline_key(
    runs: Iterable[RunRecord], *, workload: str, candidate: str, retired: Collection[str] = ()
) -> str:
    """The dependencies of the latest blessed model, for the fingerprint of the resolver that looks it up.

    The baseline of a model is the latest blessed one other than itself: without that, the run after a
    blessing would evaluate the same model again, against itself.

    Only the newest blessed run has to be found: where it trained the candidate itself, its own baseline was
    the latest blessed model other than that, and no run has blessed one since.

    Args:
        runs: the newest first; read no further than needed.
        workload, retired: as in `blessed_runs`.
        candidate: the key of the node that trains the model now.

    Returns:
        The key of the training behind that model; `none` where no other was ever blessed.
    """
    for run in blessed_runs(runs, workload=workload, retired=retired):
        key = key_of_maker(run, "Model")
        if key and key != candidate:
            return key
        if key and run.baseline and not retired:  # it may be the retired one's
            return run.baseline
    return "none"


def reference_key(
    runs: Iterable[RunRecord],
    *,
    workload: str,
    data: str,
    wanted: str = "passed",
    retired: Collection[str] = (),
) -> str:
    """The dependencies of the data that a gate compares with, for the fingerprint of its resolver.

    Data is compared with the latest other data, or a rerun would compare it with itself.

    Args:
        runs: the newest first; read no further than needed.
        workload: the pipeline's name.
        data: the key of the node that makes the statistics now.
        wanted: `passed`: the data that passed its gate last; `span N`: that of the span; `blessed`: the data
            of the last blessed model.
        retired: addresses of blessings that a user has retired; only `blessed` looks at them.

    Returns:
        The key of the statistics of that data; `none` where there is no other.
    """
    if wanted == "blessed":
        found = blessed_runs(runs, workload=workload, retired=retired)
    else:
        found = (run for run in runs if run.workload == workload and _has_passed(run, wanted))
    for run in found:
        key = key_of_maker(run, "ExampleStatistics")
        if key and key != data:
            return key
        if key and not (wanted == "blessed" and retired):  # it may be the retired one's
            return run.reference or "none"
    return "none"


def _has_passed(run: RunRecord, wanted: str) -> bool:
    nodes = (node for node in run.nodes if not node.is_resolver)
    verdicts = [each["properties"] for node in nodes for each in node.outputs_of("schemas.DataVerdict")]
    return any(wanted in ("passed", f"span {properties.get('span')}") for properties in verdicts)


def key_of_maker(run: RunRecord, type_name: str) -> str:
    """The key of the first node that output an artifact of that type; empty if none did."""
    return next((node.key for node in run.nodes if node.makes(type_name)), "")
