"""OpenTelemetry: a trace for each run, with a span for each node that ran, sent as OTLP/HTTP with JSON.

https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import hashlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.tracking.http_client import HttpClient
from slipway.pipeline.tracking.node_times import Times, ran, run_times
from slipway.pipeline.tracking.tracker import TrackerError

_INTERNAL, _OK, _ERROR = 1, 1, 2  # values of the enums SpanKind and StatusCode
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def send(record: RunRecord, address: str) -> None:
    """Send the trace to a collector, with the same ids at each attempt; see `tracker.Send`.

    OTEL_EXPORTER_OTLP_HEADERS holds headers, such as credentials: key=value,...
    """
    pairs = (pair.partition("=") for pair in os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(","))
    headers = {unquote(key).strip(): unquote(value).strip() for key, given, value in pairs if given}
    answer = HttpClient(address, headers=headers).call("POST", "/v1/traces", body=trace(record))
    partial = answer.get("partialSuccess") or {}
    if int(partial.get("rejectedSpans") or 0):
        said = " ".join(str(partial.get("errorMessage", "")).split())[:200]
        # By OTLP, a partially rejected request "MUST NOT" be sent again.
        words = f"rejected {partial['rejectedSpans']} spans" + f": {said}" * bool(said)
        raise TrackerError(words, is_final=True)


def trace(record: RunRecord) -> dict[str, object]:
    """Return the body of the request for a run's trace."""
    root = _digest(record, "", digits=16)
    spans = [_span(record, root, parent="", name=f"run {record.workload}", times=run_times(record))]
    spans[0]["attributes"] = _attributes({
        "slipway.run": record.run_id,
        "slipway.workload": record.workload,
        "slipway.state": record.state,
        "slipway.cached_nodes": sum(node.state == "cached" for node in record.nodes),
        "slipway.pushed": record.pushed["version"] if record.pushed else None,
    })  # fmt: skip
    spans[0]["status"] = {"code": _OK if record.state == "complete" else _ERROR}
    for node, times in ran(record):
        # With the time, because a node that runs again in a resumed run is another span.
        span_id = _digest(record, f"{node.id}\0{times.begin.isoformat()}", digits=16)
        span = _span(record, span_id, parent=root, name=node.id, times=times)
        span["attributes"] = _attributes({
            "slipway.node": node.id,
            "slipway.component": node.type,
            "slipway.state": node.state,
            "slipway.why": node.why,
            "slipway.attempts": node.attempts or None,  # not known of a cloud run
            "slipway.peak_bytes": node.peak_bytes or None,
        })  # fmt: skip
        said = (node.failure["message"] or node.why).splitlines()[:1]
        span["status"] = {"code": _OK} if node.is_done else {"code": _ERROR, "message": "".join(said)}
        spans.append(span)
    resource = {"attributes": _attributes({"service.name": "slipway"})}
    return {
        "resourceSpans": [
            {"resource": resource, "scopeSpans": [{"scope": {"name": "slipway"}, "spans": spans}]}
        ]
    }


def _span(record: RunRecord, span_id: str, *, parent: str, name: str, times: Times) -> dict[str, object]:
    return {
        "traceId": _digest(record, "trace", digits=32),
        "spanId": span_id,
        "parentSpanId": parent,
        "name": name,
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanoseconds(times.begin),
        "endTimeUnixNano": _nanoseconds(times.end),
    }


def _digest(record: RunRecord, part: str, *, digits: int) -> str:
    text = f"{record.workload}\0{record.run_id}\0{part}"
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:digits]


def _nanoseconds(at: datetime) -> str:
    """Return nanoseconds since 1970, as text: Protobuf's JSON has 64-bit numbers as text."""
    return str((at - _EPOCH) // timedelta(microseconds=1) * 1000)


def _attributes(values: Mapping[str, str | int | None]) -> list[dict[str, object]]:
    return [
        {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}
        for key, value in values.items()
        if value not in (None, "")
    ]
