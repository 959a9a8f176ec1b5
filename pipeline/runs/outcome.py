"""Reads what a run achieved from its nodes: metrics, blessing, pushed version, verdicts and exit code."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast, get_type_hints

from slipway.components.ingest.spans import at_span, span_kind
from slipway.components.typed_json import fits
from slipway.pipeline.exit_codes import DONE, FAILED, GATE_STOPPED
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.record import (
    Artifact,
    NodeRecord,
    RunRecord,
    Training,
    Verdict,
    verdict_path,
)
from slipway.pipeline.runs.typed_json import DocumentError, read_document, typed_text

_BLESSINGS = ("ModelBlessing", "InfraBlessing")
TRAINING_FACTS = ("verdict", "speed", "time", "tuned", "exports")


def complete_outcome(record: RunRecord) -> None:
    """Fill in `metrics`, `blessed`, `blessing_reasons`, `pushed` and `training` from the nodes' outputs.

    Works for any pipeline that blesses and pushes with TFX's artifact types; reasons and metrics come from
    the `verdict.json` that our ModelGate writes beside its blessing.
    """
    _forget_outcome(record)
    _complete_blessing(record)
    if not record.metrics:  # the run did not reach a gate
        for _, evaluation in record.outputs_of("ModelEvaluation"):
            record.metrics = _metrics_of(evaluation)
    for _, model_run in record.outputs_of("ModelRun"):
        record.training = _training_in(Path(model_run["uri"]))
    for node, pushed in record.outputs_of("PushedModel"):
        properties = pushed["properties"]
        if properties.get("pushed") == 1:
            path = pushed_to(pushed)
            record.pushed = {
                "version": str(properties.get("pushed_version") or Path(path).name),
                "path": path,
            }
            live = live_beside(path)
            if live not in ("", Path(path).name):
                record.pushed["live"] = live
            if node.state == "complete" and (over := _later_span_before(path)):
                record.pushed["over"] = over


def _forget_outcome(record: RunRecord) -> None:
    """Remove what an earlier attempt at a run had achieved, before the run was resumed."""
    record.metrics, record.training = {}, Training()
    record.blessed, record.blessing_reasons, record.pushed = None, [], None


def exit_code(record: RunRecord) -> int:
    """Return the exit code: 0 done; 1 a node failed; 3 a gate stopped the run."""
    failed = [node for node in record.nodes if node.state == "failed"]
    if any(not node.is_stop for node in failed):
        return FAILED
    return GATE_STOPPED if failed or record.blessed is False else DONE


def _complete_blessing(record: RunRecord) -> None:
    """Fill in the blessing.

    Each of several blessings, such as an Evaluator's and an InfraValidator's, can reject the model.
    """
    answers = [
        (node.id, blessing["properties"]["blessed"] == 1, _verdict_in(Path(blessing["uri"])))
        for type_name in _BLESSINGS
        for node, blessing in record.outputs_of(type_name)
        if "blessed" in blessing["properties"]
    ]
    if not answers:
        return
    record.blessed = all(is_blessed for _, is_blessed, _ in answers)
    record.metrics = {key: v for *_, verdict in answers for key, v in verdict.get("metrics", {}).items()}
    record.blessing_reasons = [
        reason
        for node_id, is_blessed, verdict in answers
        if is_blessed == record.blessed
        for reason in verdict.get("reasons") or ([] if is_blessed else [f"{node_id} did not bless the model"])
    ]


def nodes_in_the_way(record: RunRecord) -> list[str]:
    """Return the nodes that failed, stopped the run as gates, or did not bless the model, in their order."""
    refused = {
        node.id
        for type_name in _BLESSINGS
        for node, blessing in record.outputs_of(type_name)
        if blessing["properties"].get("blessed", 1) != 1
    }
    return [node.id for node in record.nodes if node.state == "failed" or node.id in refused]


def _metrics_of(evaluation: Artifact) -> dict[str, float]:
    """Return the metrics of all rows that our Evaluator stores with its output; empty for others."""
    try:
        return typed_text(dict[str, float], str(evaluation["properties"].get("metrics", "{}")))
    except DocumentError:  # another Evaluator's property of that name
        return {}


def pushed_to(artifact: Artifact) -> str:
    """Return the path that a PushedModel says the model was pushed to; its own folder if it does not say."""
    return str(artifact["properties"].get("pushed_destination") or artifact["uri"])


def live_beside(path: str) -> str:
    """Return the version that is served now, out of a pushed version and those beside it.

    Args:
        path: of the pushed version; if it is not on this disk, or cannot be read, nothing is known.

    Returns:
        The version's number; "" if there is none.
    """
    if "://" in path:
        return ""
    from slipway.components.pusher.version_store import (
        version_store_at,  # imported here because the import takes longer than reading a run
    )

    try:
        numbers = version_store_at(str(Path(path).parent)).numbers()
    except OSError:  # a share that is gone must not keep a run from being closed
        return ""
    return str(numbers[-1]) if numbers else ""


def _later_span_before(path: str) -> str:
    """Return the version before a pushed one, and its span, if that is later; "" if not, or not known.

    Args:
        path: of the pushed version; if it is not on this disk, or cannot be read, nothing is known.
    """
    if "://" in path:
        return ""
    from slipway.components.pusher.version_store import version_store_at  # as above

    try:
        store = version_store_at(str(Path(path).parent))
        versions = [number for number in store.numbers() if number <= int(Path(path).name)][-2:]
        manifests = [manifest for version in versions if (manifest := store.manifest(version))]
        data = [manifest.provenance["data"] for manifest in manifests]
        spans = [int(each["span"]) for each in data]
    except (OSError, ValueError, KeyError):
        return ""
    if len(spans) < 2 or spans[0] <= spans[1]:
        return ""
    form = "{YYYY}-{MM}-{DD}" if span_kind([data[1].get("source", "")]) == "date" else "{SPAN}"
    then, own = (at_span(form, span) for span in spans)
    return f"version {versions[0]}, whose span {then} is later than its {own}"


def read_verdict(record: RunRecord) -> Verdict:
    """Return the whole verdict of the run's gate, with all checks and slices' metrics; empty without one."""
    verdicts = (_verdict_in(Path(blessing["uri"])) for _, blessing in record.outputs_of("ModelBlessing"))
    return next(filter(None, verdicts), Verdict())


def read_stops(record: RunRecord) -> dict[str, Verdict]:
    """Return the verdict of each gate node that stopped the run, by node id; empty for a lost one."""
    stops = {}
    for node in record.nodes:
        if node.is_stop:
            stops[node.id] = _verdict(verdict_path(record.folder, node.id))
    return stops


def read_verdicts(record: RunRecord) -> list[Verdict]:
    """Return the verdicts of the run's data gates that let the data pass."""
    return [_verdict_in(Path(found["uri"])) for _, found in record.outputs_of("schemas.DataVerdict")]


def _training_in(folder: Path) -> Training:
    """Return our Trainer's report of speed, exports and tuned values.

    A Trainer of one's own may write anything: values of another form than the one that is shown are left
    out.
    """
    result = _fitting(Training, _read(folder / "result.json"))
    return cast(Training, {name: result[name] for name in TRAINING_FACTS if result.get(name)})


def _verdict_in(folder: Path) -> Verdict:
    return _verdict(folder / "verdict.json")  # missing beside the blessing of another pipeline's gate


def _verdict(path: Path) -> Verdict:
    """Return a verdict without what is not shown as it should be: a gate of one's own may write anything."""
    return cast(Verdict, _fitting(Verdict, _read(path)))


def _fitting(kind: type, found: Mapping[str, object]) -> dict[str, object]:
    """Return the values that fit their key's type in a TypedDict, and those of keys that it does not know."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: each for name, each in found.items() if fits(hints.get(name, object), each)}


def _read(path: Path) -> dict[str, object]:
    """Return a document that a node wrote; empty if it wrote none; if damaged, a verdict that says so."""
    try:
        return read_document(dict[str, object], path)
    except FileNotFoundError:
        return {}
    except DocumentError as error:
        return {key: [error.message] for key in ("reasons", "lines", "notes")}


def discard_results_behind_stopped_gates(record: RunRecord, graph: Graph) -> list[NodeRecord]:
    """Remove earlier results behind a gate that has stopped the run: they are not results of this run.

    Returns:
        The nodes that were cached and are skipped now.
    """
    discarded = []
    for gate in [node.id for node in record.nodes if node.is_stop]:
        for node_id in sorted(graph.downstream_of([gate]) - {gate}):
            entry = record.node(node_id)
            if entry.state == "cached":
                entry.outputs, entry.execution_id = {}, None
                entry.state, entry.why = "skipped", f"{gate} stopped the run"
                discarded.append(entry)
    return discarded
