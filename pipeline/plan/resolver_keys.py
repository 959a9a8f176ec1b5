"""Finds the run whose model is the baseline, and computes the keys for resolvers' fingerprints. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from slipway.pipeline.runs.record import RunRecord


def blessings_of(run: RunRecord) -> set[str]:
    """Return the URIs of the blessings that a run made or took from its cache."""
    nodes = (node for node in run.nodes if not node.is_resolver)
    return {each["uri"] for node in nodes for each in node.outputs_of("ModelBlessing")}


def blessed_runs(
    runs: Iterable[RunRecord],
    *,
    workload: str,
    retired: Collection[str] = (),
    late: Sequence[RunRecord] = (),
) -> Iterator[RunRecord]:
    """Yield the runs that blessed a model which may be a baseline; the first one's model is the baseline.

    TFX's resolver takes the model that was made last, which need not be the one that was blessed last: after
    a setting was changed back, an earlier model is blessed again.

    Args:
        runs: the newest first; read no further than needed.
        retired: URIs of blessings that a user has retired.
        late: those of the runs that may have made their models after later runs, see `History.late_runs`.
    """

    def own(found: Iterable[RunRecord]) -> Iterator[RunRecord]:
        blessed = (run for run in found if run.workload == workload and _has_blessed(run))
        return (run for run in blessed if blessings_of(run).isdisjoint(retired))

    known = {run.run_id for run in late}
    return _latest_made_first((run for run in own(runs) if run.run_id not in known), late=own(late))


def _latest_made_first(runs: Iterable[RunRecord], *, late: Iterable[RunRecord]) -> Iterator[RunRecord]:
    held = list(late)
    for run in runs:
        held.append(run)
        makers = [node for node in run.nodes if node.makes("Model")]
        if any(node.state != "cached" for node in makers):  # all earlier runs that are not late have older
            made = _last_execution(run)
            yield from _by_model([each for each in held if _last_execution(each) >= made])
            held = [each for each in held if _last_execution(each) < made]
    yield from _by_model(held)


def _by_model(runs: list[RunRecord]) -> list[RunRecord]:
    return sorted(runs, key=_last_execution, reverse=True)  # equal ones stay in order


def _last_execution(run: RunRecord) -> int:
    """Return the id of the last execution that made a model of the run, in whichever run that was."""
    return max((node.execution_id or 0 for node in run.nodes if node.makes("Model")), default=0)


def _has_blessed(run: RunRecord) -> bool:
    """Return True if TFX's resolver finds a model that the run blessed.

    It asks for the blessings of models alone: an InfraValidator, or another Evaluator, that refused the run
    does not count.
    """
    return bool(run.blessed) or any(
        each["properties"].get("blessed") == 1
        for node in run.nodes
        if run.blessed is False and not node.is_resolver
        for each in node.outputs_of("ModelBlessing")
    )


def baseline_key(
    runs: Iterable[RunRecord],
    *,
    workload: str,
    candidate: str,
    retired: Collection[str] = (),
    late: Sequence[RunRecord] = (),
) -> str:
    """Return what the latest blessed model depends on, for the fingerprint of the resolver that looks it up.

    The baseline of a model is the last made of the other blessed models. Otherwise the run after a
    blessing would evaluate the same model again, against itself.

    Only the run of the latest model is needed: if that is the candidate itself, its own baseline was the
    latest of the others, and none was made since.

    Args:
        runs: the newest first; read no further than needed.
        workload, retired, late: as in `blessed_runs`.
        candidate: the current `joined` keys of the nodes that make models.

    Returns:
        The keys of the nodes that made models in that model's run; `none` if no other was ever blessed.
    """
    for run in blessed_runs(runs, workload=workload, retired=retired, late=late):
        key = key_of_models(run)
        if key and key != candidate:
            return key
        if key and run.baseline and not retired:  # if any is retired, run.baseline may be the retired one
            return run.baseline
    return "none"


def reference_key(
    runs: Iterable[RunRecord],
    *,
    workload: str,
    data: str,
    wanted: str = "passed",
    retired: Collection[str] = (),
    late: Sequence[RunRecord] = (),
) -> str:
    """Return what a gate's reference data depends on, for the fingerprint of the resolver that looks it up.

    Data is compared with the latest other data; otherwise a rerun would compare it with itself.

    Args:
        runs: the newest first; read no further than needed.
        data: the current key of the node that makes the statistics.
        wanted: `passed`: the data that passed its gate last; `span N`: that of the span; `blessed`: the
            data of the last blessed model.
        retired, late: as in `blessed_runs`; used for `blessed` only.

    Returns:
        The key of the statistics of that data; `none` if there is no other.
    """
    if wanted == "blessed":
        found = blessed_runs(runs, workload=workload, retired=retired, late=late)
    else:
        found = (run for run in runs if run.workload == workload and _has_passed(run, wanted))
    for run in found:
        key = key_of_maker(run, "ExampleStatistics")
        if key and key != data:
            return key
        if key and not (wanted == "blessed" and retired):  # run.reference may belong to the retired model
            return run.reference or "none"
    return "none"


def _has_passed(run: RunRecord, wanted: str) -> bool:
    nodes = (node for node in run.nodes if not node.is_resolver)
    verdicts = [each["properties"] for node in nodes for each in node.outputs_of("schemas.DataVerdict")]
    return any(wanted in ("passed", f"span {properties.get('span')}") for properties in verdicts)


def key_of_models(run: RunRecord) -> str:
    """Return the `joined` keys of all nodes of a run that made a model; empty if none did."""
    return joined({node.id: node.key for node in run.nodes if node.makes("Model")})


def joined(keys: Mapping[str, str]) -> str:
    """Return the keys of several nodes as one: any of their models may be the one that is blessed.

    Args:
        keys: by the nodes' ids.
    """
    return "+".join(keys[node_id] for node_id in sorted(keys))


def key_of_maker(run: RunRecord, type_name: str) -> str:
    """Return the key of the first node that made an artifact of that type; empty if none did."""
    return next((node.key for node in run.nodes if node.makes(type_name)), "")
