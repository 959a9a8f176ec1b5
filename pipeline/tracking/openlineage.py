"""OpenLineage: events for a run and each of its nodes that ran, with their inputs and outputs.

Each event is sent as JSON to `/api/v1/lineage`, as by OpenLineage's HTTP transport.
https://openlineage.io/docs/spec/object-model
"""

import os
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import cast
from urllib.parse import urlsplit

from slipway.pipeline.runs.record import NodeRecord, RunRecord, artifacts_in
from slipway.pipeline.tracking.http_client import HttpClient
from slipway.pipeline.tracking.node_times import ran, run_times
from slipway.pipeline.tracking.run_facts import node_data, run_data

Event = dict[str, object]

PRODUCER = "urn:slipway"
_SPEC = "https://openlineage.io/spec"
_EVENT = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
# The version of each facet's specification.
_FACETS = {
    "DatasetVersionDatasetFacet": "1-0-1",
    "ErrorMessageRunFacet": "1-0-1",
    "JobTypeJobFacet": "2-0-4",
    "ParentRunFacet": "1-2-0",
}
_NAMESPACE = "slipway"
_IDS = uuid.uuid5(uuid.NAMESPACE_URL, PRODUCER)
_ENDS = {"complete": "COMPLETE", "cached": "COMPLETE"} | dict.fromkeys(
    ("interrupted", "killed", "pruned", "skipped"), "ABORT"
)


def send(record: RunRecord, address: str) -> None:
    """Send the events in chronological order, with the same ids at each attempt; see `tracker.Send`.

    OPENLINEAGE_API_KEY holds the server's key.
    """
    key = os.environ.get("OPENLINEAGE_API_KEY")
    client = HttpClient(address, headers={"Authorization": f"Bearer {key}"} if key else {})
    for event in events(record):
        client.call("POST", "/api/v1/lineage", body=event)


def events(record: RunRecord) -> list[Event]:
    """Return the events of the run and of its nodes, in chronological order."""
    found = [*_of_run(record), *_of_nodes(record)]
    return [event for _, event in sorted(found, key=lambda each: each[0])]


def _of_run(record: RunRecord) -> Iterator[tuple[datetime, Event]]:
    times = run_times(record)
    run: dict[str, object] = {"runId": _id(record), "facets": {}}
    job = _job(record.workload, kind="DAG")
    inputs = _data(run_data(record))
    yield times.begin, _event("START", times.begin, run, job, inputs=inputs)
    end = _ENDS.get(record.state, "FAIL")
    yield times.end, _event(end, times.end, run, job, inputs=inputs, outputs=_pushed(record))


def _of_nodes(record: RunRecord) -> Iterator[tuple[datetime, Event]]:
    parent = _facet(
        "ParentRunFacet",
        run={"runId": _id(record)},
        job={"namespace": _NAMESPACE, "name": record.workload},
    )
    data = node_data(record)
    for node, times in ran(record):
        job = _job(f"{record.workload}.{node.id}", kind="TASK")
        run: dict[str, object] = {"runId": _id(record, node.id, times.begin), "facets": {"parent": parent}}
        # The files and the version too, so that the nodes link the data to the model that is served.
        inputs = _data(data.get(node.id, {}))
        for name in node.upstream:
            inputs += _artifacts(record.node(name))
        yield times.begin, _event("START", times.begin, run, job, inputs=inputs)
        outputs = _artifacts(node) + (_pushed(record) if node.makes("PushedModel") else [])
        yield (
            times.end,
            _event(
                _ENDS.get(node.state, "FAIL"),
                times.end,
                _ended(run, node),
                job,
                inputs=inputs,
                outputs=outputs,
            ),
        )


def _data(digests: Mapping[str, str]) -> list[dict[str, object]]:
    return [_dataset(name, version=digest) for name, digest in digests.items()]


def _artifacts(node: NodeRecord) -> list[dict[str, object]]:
    return [_dataset(each.get("copy_of") or each["uri"]) for each in artifacts_in(node.outputs)]


def _pushed(record: RunRecord) -> list[dict[str, object]]:
    return [_dataset(record.pushed["path"], version=record.pushed["version"])] if record.pushed else []


def _ended(run: dict[str, object], node: NodeRecord) -> dict[str, object]:
    if node.is_done:
        return run
    facets = cast(dict[str, object], run["facets"])
    said = "".join((node.failure["message"] or node.why).splitlines()[:1])
    error = _facet("ErrorMessageRunFacet", message=said, programmingLanguage="PYTHON")
    return {**run, "facets": {**facets, "errorMessage": error}}


def _event(
    kind: str,
    at: datetime,
    run: Mapping[str, object],
    job: Mapping[str, object],
    *,
    inputs: list[dict[str, object]],
    outputs: list[dict[str, object]] | None = None,
) -> Event:
    return {
        "eventType": kind,
        "eventTime": at.astimezone(UTC).isoformat(timespec="milliseconds"),
        "run": run,
        "job": job,
        "inputs": inputs,
        "outputs": outputs or [],
        "producer": PRODUCER,
        "schemaURL": _EVENT,
    }


def _job(name: str, *, kind: str) -> dict[str, object]:
    job_type = _facet("JobTypeJobFacet", processingType="BATCH", integration="SLIPWAY", jobType=kind)
    return {"namespace": _NAMESPACE, "name": name, "facets": {"jobType": job_type}}


def _dataset(uri: str, *, version: str = "") -> dict[str, object]:
    """Describe a folder or file, named by OpenLineage's rules: `file` and path, or bucket and key."""
    place = urlsplit(uri) if "://" in uri else None
    namespace = f"{place.scheme}://{place.netloc}" if place else "file"
    facets = {"version": _facet("DatasetVersionDatasetFacet", datasetVersion=version)} if version else {}
    return {"namespace": namespace, "name": place.path.lstrip("/") if place else uri, "facets": facets}


def _facet(name: str, **values: object) -> dict[str, object]:
    schema = f"{_SPEC}/facets/{_FACETS[name]}/{name}.json#/$defs/{name}"
    return {"_producer": PRODUCER, "_schemaURL": schema, **values}


def _id(record: RunRecord, node: str = "", begin: datetime | None = None) -> str:
    """Return a UUID that is the same each time this is sent, for a run or for one execution of a node.

    A node of a resumed run that has run again is another run to OpenLineage: one run ends once, and a server
    would keep the error of the first execution with the second.
    """
    parts = (record.workload, record.run_id, node, *([begin.isoformat()] if begin else []))
    return str(uuid.uuid5(_IDS, "\0".join(parts)))
