"""Finds the run whose model is the baseline, and computes the keys for resolvers' fingerprints. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from slipway.pipeline.runs.record import RunRecord

_VERDICT = "schemas.DataVerdict"


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
        late: those of the runs that may have made their artifacts after later runs, see `History.late_runs`.
    """

    def counts(run: RunRecord) -> bool:
        return run.workload == workload and _has_blessed(run) and blessings_of(run).isdisjoint(retired)

    return _latest_made_first("Model", filter(counts, runs), late=list(filter(counts, late)))


def _latest_made_first(
    kind: str, runs: Iterable[RunRecord], *, late: Sequence[RunRecord]
) -> Iterator[RunRecord]:
    """Yield runs in the order in which TFX's resolvers take artifacts of that type: the last made first."""
    held, known = list(late), {run.run_id for run in late}
    for run in runs:
        if run.run_id in known:
            continue
        held.append(run)
        makers = [node for node in run.nodes if node.makes(kind)]
        if any(node.state != "cached" for node in makers):  # all earlier runs that are not late have older
            made = _last_execution(run, kind)
            yield from _by_execution([each for each in held if _last_execution(each, kind) >= made], kind)
            held = [each for each in held if _last_execution(each, kind) < made]
    yield from _by_execution(held, kind)


def _by_execution(runs: list[RunRecord], kind: str) -> list[RunRecord]:
    # Equal ones stay in order.
    return sorted(runs, key=lambda run: _last_execution(run, kind), reverse=True)


def _last_execution(run: RunRecord, kind: str) -> int:
    """Return the id of the last execution that made the run's artifact of a type, in whichever run."""
    return max((node.execution_id or 0 for node in run.nodes if node.makes(kind)), default=0)


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
        The keys of the nodes that made models in that model's run, and their last execution: two trainings
        with equal settings need not make equal models. `none` if no other was ever blessed.
    """
    for run in blessed_runs(runs, workload=workload, retired=retired, late=late):
        key = key_of_models(run)
        if key and key != candidate:
            return f"{key}@{_last_execution(run, 'Model')}"
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

    Data is compared with the latest other data; otherwise a rerun would compare it with itself. The latest is
    that whose verdict was made last, as TFX's resolvers take it: not that of the run that began last, which
    may have taken an earlier verdict from the cache, or have ended before an earlier run was resumed.

    Args:
        runs: the newest first; read no further than needed.
        data: the current key of the node that makes the statistics.
        wanted: `passed`: the data that passed its gate last; `span N`: that of the span; `blessed`: the
            data of the last blessed model.
        retired: as in `blessed_runs`; used for `blessed` only.
        late: as in `blessed_runs`.

    Returns:
        The key of the statistics of that data; `none` if there is no other.
    """
    if wanted == "blessed":
        found = blessed_runs(runs, workload=workload, retired=retired, late=late)
    else:

        def counts(run: RunRecord) -> bool:
            return run.workload == workload and _has_passed(run, wanted)

        found = _latest_made_first(_VERDICT, filter(counts, runs), late=list(filter(counts, late)))
    for run in found:
        key = key_of_maker(run, "ExampleStatistics")
        if key and key != data:
            return key
        if key and not (wanted == "blessed" and retired):  # run.reference may belong to the retired model
            return run.reference or "none"
    return "none"


def _has_passed(run: RunRecord, wanted: str) -> bool:
    nodes = (node for node in run.nodes if not node.is_resolver)
    verdicts = [each["properties"] for node in nodes for each in node.outputs_of(_VERDICT)]
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
