"""A run's trace in a real OpenTelemetry collector, which passes on what it has read to a server on loopback.

Seen only here: that the collector takes what is sent, and reads of it what was meant.
"""

import contextlib
import copy
import json
import socket
import subprocess
import time

import pytest
from loopback import reserved_port
from tracker_double import Collector, served
from watched import listeners_of

from slipway.pipeline.tracking import opentelemetry
from slipway.pipeline.tracking.http_client import AnswerError
from slipway.pipeline.tracking.node_times import node_times, run_times

pytestmark = [pytest.mark.slow, pytest.mark.external]

LIMIT_S = 60.0
# Values of the enums SpanKind and StatusCode in OTLP; 0, unset, is not written.
INTERNAL, OK, ERROR = 1, 1, 2


@pytest.fixture(scope="module")
def backend():
    """A server that the collector passes its traces on to."""
    with served(Collector()) as double:
        yield double


@pytest.fixture(scope="module")
def address(project, backend, tmp_path_factory):
    """The address of a collector."""
    program = project / ".engines" / "otel-collector"
    if not program.exists():
        pytest.skip("OpenTelemetry's collector is not here: `make otel-collector` builds it")
    # Without a queue, so that a request is answered when the backend has answered.
    passes_on = {
        "endpoint": backend.address, "encoding": "json", "compression": "none",
        "sending_queue": {"enabled": False}, "retry_on_failure": {"enabled": False},
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("collector")
    with reserved_port() as port, (folder / "log").open("wb") as log:
        settings = {
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
            "exporters": {"otlp_http": passes_on},
            "service": {"pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["otlp_http"]}}},
        }
        (folder / "collector.json").write_text(json.dumps(settings))  # JSON is YAML
        process = subprocess.Popen(
            [program, "--config", folder / "collector.json"], stdout=log, stderr=log, cwd=folder
        )
        try:
            until = time.monotonic() + LIMIT_S
            while not _listens(port):
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < until
                time.sleep(0.05)
            assert {each.address for each in listeners_of(process.pid)} == {f"127.0.0.1:{port}"}
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def send(address, backend):
    """Sends a run to that collector, which has been sent nothing yet."""
    backend.got.clear()
    backend.refuses.clear()
    return lambda record: opentelemetry.send(record, address)


@pytest.fixture
def failed_record(first_record):
    """The run as if its last node had failed."""
    record = copy.deepcopy(first_record)
    record.state, record.pushed = "failed", None
    last = record.nodes[-1]
    last.state, last.error = "failed", {"message": "no space\nleft: 10 µs, “wrong”"}
    return record


def _listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def passed_on(backend):
    """The spans of the one request that the collector has made, and the name of their service."""
    [(method, path, _, body)] = backend.got
    assert (method, path) == ("POST", "/v1/traces")
    [resource] = json.loads(body)["resourceSpans"]
    [scope] = resource["scopeSpans"]
    assert scope["scope"] == {"name": "slipway"}
    return scope["spans"], attributes(resource["resource"])["service.name"]


def attributes(of):
    return {each["key"]: value(each["value"]) for each in of["attributes"]}


def value(typed):
    [(kind, found)] = typed.items()
    return int(found) if kind == "intValue" else found


def nanoseconds(at):
    return round(at.timestamp() * 1_000_000) * 1000


def test_the_collector_reads_a_span_for_the_run_and_below_it_one_for_each_node(send, backend, first_record):
    send(first_record)
    [run, *nodes], service = passed_on(backend)
    assert service == "slipway"
    assert run["name"] == "run taxi"
    assert run.get("parentSpanId", "") == ""
    assert [each["name"] for each in nodes] == [node.id for node in first_record.nodes]
    assert {each["parentSpanId"] for each in nodes} == {run["spanId"]}
    assert {each["traceId"] for each in nodes} == {run["traceId"]}
    assert len({each["spanId"] for each in (run, *nodes)}) == 1 + len(nodes)
    assert {each["kind"] for each in (run, *nodes)} == {INTERNAL}
    assert [each["status"] for each in (run, *nodes)] == [{"code": OK}] * (1 + len(nodes))

    times = {"run taxi": run_times(first_record), **node_times(first_record)}
    for each in (run, *nodes):
        meant = times[each["name"]]
        assert int(each["startTimeUnixNano"]) == nanoseconds(meant.begin)
        assert int(each["endTimeUnixNano"]) == nanoseconds(meant.end)
    assert attributes(run) == {
        "slipway.run": first_record.run_id, "slipway.workload": "taxi", "slipway.state": "complete",
        "slipway.cached_nodes": 0, "slipway.pushed": first_record.pushed["version"],
    }  # fmt: skip
    assert [attributes(each) for each in nodes] == [
        {
            "slipway.node": node.id, "slipway.component": node.type, "slipway.state": "complete",
            "slipway.why": "first run", "slipway.attempts": 1, "slipway.peak_bytes": node.peak_bytes,
        }
        for node in first_record.nodes
    ]  # fmt: skip


def test_the_collector_reads_what_has_failed_and_why(send, backend, failed_record):
    send(failed_record)
    [run, *nodes], _ = passed_on(backend)
    assert run["status"] == {"code": ERROR}
    assert [each["status"] for each in nodes[:-1]] == [{"code": OK}] * (len(nodes) - 1)
    assert nodes[-1]["status"] == {"code": ERROR, "message": "no space"}
    assert attributes(nodes[-1])["slipway.state"] == "failed"


def test_what_a_collector_cannot_pass_on_now_waits_and_is_the_same_later(send, backend, first_record):
    backend.refuses["/v1/traces"] = (503, {})
    with pytest.raises(AnswerError, match="answered 503") as refused:
        send(first_record)
    assert refused.value.is_away
    assert not refused.value.is_final
    refused_spans, _ = passed_on(backend)
    backend.got.clear()
    backend.refuses.clear()
    send(first_record)
    assert passed_on(backend)[0] == refused_spans


def test_a_trace_that_the_collector_cannot_read_is_reported(send, first_record, monkeypatch):
    broken = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "no id"}]}]}]}
    monkeypatch.setattr(opentelemetry, "trace", lambda _: broken)
    with pytest.raises(AnswerError, match=r"answered 400: .*traceId") as refused:
        send(first_record)
    assert not refused.value.is_away
