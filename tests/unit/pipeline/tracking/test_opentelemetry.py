"""A trace for each run, as OTLP over HTTP has it."""

import json

import pytest

from slipway.pipeline.tracking.opentelemetry import send
from slipway.pipeline.tracking.tracker import TrackerError


def spans(collector):
    found = []
    for method, path, headers, body in collector.got:
        assert (method, path, headers["Content-Type"]) == ("POST", "/v1/traces", "application/json")
        [resource] = json.loads(body)["resourceSpans"]
        [scope] = resource["scopeSpans"]
        found.append(scope["spans"])
    return found


def attributes(span):
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def test_each_node_that_ran_is_a_span_of_its_run(collector, failed_run):
    record = failed_run(opentelemetry=collector.address)
    record.node("Trainer").peak_bytes = 4096
    send(record, collector.address)
    [[run, trainer, gate]] = spans(collector)
    assert [each["name"] for each in (run, trainer, gate)] == ["run taxi", "Trainer", "Gate"]
    assert [each["parentSpanId"] for each in (run, trainer, gate)] == ["", run["spanId"], run["spanId"]]
    assert {each["traceId"] for each in (run, trainer, gate)} == {run["traceId"]}
    assert (len(run["traceId"]), {len(each["spanId"]) for each in (run, trainer, gate)}) == (32, {16})
    assert (trainer["startTimeUnixNano"], trainer["endTimeUnixNano"]) == (
        "1795489201000000000", "1795489202000000000",
    )  # fmt: skip
    assert [each["status"] for each in (run, trainer, gate)] == [
        {"code": 2}, {"code": 1}, {"code": 2, "message": "no"},
    ]  # fmt: skip
    assert attributes(run) == {
        "slipway.run": record.run_id, "slipway.workload": "taxi", "slipway.state": "failed",
        "slipway.cached_nodes": "1",
    }  # fmt: skip
    assert attributes(trainer) == {
        "slipway.node": "Trainer", "slipway.component": "Trainer", "slipway.state": "complete",
        "slipway.why": "first run", "slipway.attempts": "2", "slipway.peak_bytes": "4096",
    }  # fmt: skip


def test_what_is_sent_twice_is_the_same(collector, failed_run):
    record = failed_run(opentelemetry=collector.address)
    send(record, collector.address)
    send(record, collector.address)
    first, second = spans(collector)
    assert first == second


def test_a_node_that_runs_again_in_a_resumed_run_is_another_span(collector, made_again):
    for minute in (0, 1):
        record = made_again("Ingest", minute=minute, opentelemetry=collector.address)
        send(record, collector.address)
    (run, first), (same_run, then) = spans(collector)
    assert (same_run["traceId"], same_run["spanId"]) == (run["traceId"], run["spanId"])
    assert then["spanId"] != first["spanId"]
    assert then["parentSpanId"] == first["parentSpanId"] == run["spanId"]


@pytest.mark.parametrize(
    ("value", "header"), [("x-key=hunter2", "hunter2"), ("a=1, X-Key=b%20c,none", "b c"), ("", None)]
)
def test_headers_come_from_the_exporters_variable(collector, make_run, monkeypatch, value, header):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", value)
    record = make_run(opentelemetry=collector.address)
    send(record, collector.address)
    [(_, _, headers, _)] = collector.got
    assert {name.lower(): text for name, text in headers.items()}.get("x-key") == header


@pytest.mark.parametrize(
    ("rejected", "words"),
    [
        ({"rejectedSpans": "2", "errorMessage": "too\nold"}, "rejected 2 spans: too old"),
        ({"rejectedSpans": 1}, "rejected 1 span"),
    ],
)
def test_spans_that_are_not_taken_are_reported(collector, make_run, monkeypatch, rejected, words):
    monkeypatch.setattr(collector, "answer", lambda *_: (200, {"partialSuccess": rejected}))
    record = make_run(opentelemetry=collector.address)
    with pytest.raises(TrackerError, match=words):
        send(record, collector.address)
