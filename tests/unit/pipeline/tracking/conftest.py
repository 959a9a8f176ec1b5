"""A finished run as its files tell it, and an MLflow that keeps what it is sent."""

import json

import pytest
from tracker_double import Collector, MlflowDouble, served

from slipway.components.pusher.manifest import FileEntry, Manifest, sha256
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord
from slipway.pipeline.runs.run_target import RecordedRequest, WorkloadRun

DIGEST = "5" * 64
SIGNATURE = {
    "inputs": {"fare": {"dtype": "float", "shape": [None, 1]}, "company": {"dtype": "string", "shape": None}},
    "outputs": {"outputs": {"dtype": "double", "shape": [None, 1]}},
}


@pytest.fixture
def mlflow(monkeypatch):
    """An MLflow on loopback."""
    for name in ("TOKEN", "USERNAME", "PASSWORD"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    with served(MlflowDouble()) as double:
        yield double


@pytest.fixture
def collector(monkeypatch):
    """A server on loopback that takes anything."""
    for name in ("OTEL_EXPORTER_OTLP_HEADERS", "OPENLINEAGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with served(Collector()) as double:
        yield double


@pytest.fixture
def failed_run(make_run):
    """Makes a run of which a node is cached, one ran at its second attempt, and one has failed."""

    def make(**track):
        record = make_run(**track)
        record.state = "failed"
        [trained] = record.nodes
        ingest = NodeRecord("Ingest", "Ingest", "cached")
        ingest.outputs = {
            "examples": [{"uri": "gs://bucket/examples/1", "type": "Examples", "properties": {}}]
        }
        trained.upstream, trained.attempts, trained.why = ["Ingest"], 2, "first run"
        gate = NodeRecord("Gate", "ModelGate", "failed", upstream=["Trainer"], error={"message": "no\nmore"})
        record.nodes = [ingest, trained, gate]
        events = [
            ("03:00:00.250", "Trainer", "running"), ("03:00:00.500", "Trainer", "failed"),
            ("03:00:01.000", "Trainer", "running"), ("03:00:02.000", "Trainer", "complete"),
            ("03:00:02.000", "Gate", "running"), ("03:00:02.250", "Gate", "failed"),
            ("03:00:02.500", None, "failed"),
        ]  # fmt: skip
        lines = [
            {
                "at": f"2026-11-24T{at}+00:00",
                "state": state,
                **({"node": node} if node else {"run": record.run_id}),
            }
            for at, node, state in events
        ]
        text = "\n".join([*map(json.dumps, lines), "[]", '{"torn'])
        (record.folder / "events.jsonl").write_text(text, encoding="utf-8")
        History(record.output).save(record)
        return record

    return make


@pytest.fixture
def made_again(make_run):
    """Makes one run whose only node ran in that minute, as a resumed run's node runs again in a later one."""
    made = []

    def make(node, kind="Examples", *, minute=0, **track):
        record = made[0] if made else made.append(make_run(**track)) or made[0]
        artifact = {"uri": f"/made/{kind}", "type": kind, "properties": {}}
        record.nodes = [NodeRecord(node, node, "complete", outputs={"made": [artifact]})]
        lines = [
            {"at": f"2026-11-24T03:0{minute}:0{second}+00:00", "node": node, "state": state}
            for second, state in ((0, "running"), (1, "complete"))
        ]
        (record.folder / "events.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        return record

    return make


@pytest.fixture
def make_run(tmp_path):
    """Makes a run that is over, of a workload with these trackers."""

    def make(*, workload="taxi", pushed=False, **track):
        history = History(tmp_path)
        config = {
            "name": workload, "train": {"batch_size": 256, "seed": None, "hyperparameters": {"rate": 0.5}},
            "evaluate": {"metrics": ["auc"]}, "notify": {"command": ["hunter2"]}, "track": track,
        }  # fmt: skip
        target = WorkloadRun(config=json.dumps(config), output=tmp_path)
        record = history.new_run(workload, RecordedRequest(workload=workload, target=target, output=tmp_path))
        record.state, record.exit_code, record.wall_s = "complete", 0, 2.5
        record.started_at = "2026-11-24T03:00:00+00:00"
        record.metrics = {"auc": 0.95, "lost": float("nan")}
        record.training = {"speed": {"step_ms": 0.5}}
        trained = tmp_path / "trained"
        trained.mkdir(exist_ok=True)
        epochs = [{"epoch": 1, "loss": 0.5, "val_loss": 0.6}, {"epoch": 2, "loss": 0.25, "val_loss": 0.5}]
        (trained / "history.json").write_text(json.dumps({"epochs": epochs}), encoding="utf-8")
        artifact = {"uri": str(trained), "type": "ModelRun", "properties": {}}
        record.nodes = [NodeRecord("Trainer", "Trainer", "complete", outputs={"model_run": [artifact]})]
        (record.folder / "report.html").write_text("<p>report</p>", encoding="utf-8")
        history.save_fingerprints(record.run_id, {"Ingest": Fingerprint({"data:trips.csv": DIGEST})})
        if pushed:
            record.pushed = {"version": "17", "path": str(push(tmp_path / "serving" / workload / "17"))}
        history.save(record)
        return record

    return make


def push(folder):
    """A version as the Pusher leaves it."""
    (folder / "variables").mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables" / "variables.index").write_bytes(b"")
    files = {
        name: FileEntry(sha256(folder / name), (folder / name).stat().st_size)
        for name in ("saved_model.pb", "variables/variables.index")
    }
    provenance = {
        "pushed_at": "2026-11-24T03:00:02+00:00",
        "model": {"signatures": {"serve_raw": SIGNATURE, "serving_default": SIGNATURE}, "digest": DIGEST},
        "stack": {"tensorflow": "2.21.0", "keras": "3.15.1", "python": "3.11.7"},
    }
    (folder / "manifest.json").write_bytes(Manifest(files, provenance).to_bytes())
    return folder
