"""A run in MLflow: all of it once, however often it is sent."""

import json
from dataclasses import replace

import pytest
from tracker_double import missing

from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs.history import History
from slipway.pipeline.tracking import mlflow as module
from slipway.pipeline.tracking.http_client import AnswerError
from slipway.pipeline.tracking.tracker import TrackerError


def send(record):
    module.send(record, record.target.settings.track.mlflow)


@pytest.mark.parametrize("times", [1, 2])
def test_all_of_a_run_is_there_once(mlflow, make_run, times):
    record = make_run(mlflow=mlflow.address)
    for _ in range(times):
        send(record)
    [run] = mlflow.runs.values()
    assert list(mlflow.experiments) == ["taxi"]
    assert run["info"] | {"artifact_uri": ""} == {
        "run_id": "run0", "experiment_id": "1", "artifact_uri": "", "status": "FINISHED",
        "end_time": 1795489202500,
    }  # fmt: skip
    assert run["params"] == {
        "train.batch_size": "256", "train.hyperparameters.rate": "0.5", "evaluate.metrics": '["auc"]',
    }  # fmt: skip
    begun, at = 1795489200000, 1795489202500
    assert run["metrics"] == {
        ("auc", 0.95, at, 0), ("speed/step_ms", 0.5, at, 0), ("wall_s", 2.5, at, 0),
        ("training/loss", 0.5, begun, 1), ("training/loss", 0.25, begun, 2),
        ("training/val_loss", 0.6, begun, 1), ("training/val_loss", 0.5, begun, 2),
    }  # fmt: skip
    tags = run["tags"]
    assert (tags["slipway.run"], tags["slipway.state"]) == (record.run_id, "complete")
    assert "slipway.blessed" not in tags
    assert len(tags["slipway.data_digest"]) == 64
    [dataset] = run["datasets"].values()
    assert (dataset["name"], dataset["digest"]) == ("trips.csv", "5" * 36)
    assert mlflow.files == {"1/run0/artifacts/report.html": b"<p>report</p>"}
    assert mlflow.versions == []


def test_an_experiment_can_be_named(mlflow, make_run):
    send(make_run(mlflow=mlflow.address, experiment="team / taxi"))
    assert list(mlflow.experiments) == ["team / taxi"]


def test_a_deleted_experiment_is_reported_with_what_to_do(mlflow, make_run):
    mlflow.experiments["taxi"] = {"experiment_id": "1", "lifecycle_stage": "deleted"}
    with pytest.raises(TrackerError, match=r"'taxi' as deleted: restore it there, or .*track\.experiment"):
        send(make_run(mlflow=mlflow.address))


def test_an_experiment_that_another_run_makes_first_is_taken(mlflow, make_run, monkeypatch):
    made = mlflow.experiments_create

    def first_another(body):
        made(body)
        return made(body)

    monkeypatch.setattr(mlflow, "experiments_create", first_another)
    send(make_run(mlflow=mlflow.address))
    assert len(mlflow.runs) == 1


def test_one_that_is_neither_found_nor_made_is_reported(mlflow, make_run, monkeypatch):
    mlflow.experiments["taxi"] = {"experiment_id": "1"}
    monkeypatch.setattr(mlflow, "experiments_get_by_name", lambda _: missing())
    with pytest.raises(TrackerError, match="neither finds nor makes"):
        send(make_run(mlflow=mlflow.address))


@pytest.mark.parametrize("path", ["get-by-name", "experiments/create"])
def test_a_server_that_refuses_is_reported(mlflow, make_run, path):
    mlflow.refuses[path] = (403, {"error_code": "PERMISSION_DENIED"})
    with pytest.raises(AnswerError, match="answered 403: PERMISSION_DENIED"):
        send(make_run(mlflow=mlflow.address))


def test_what_breaks_off_is_continued_and_shown_as_running_until_then(mlflow, make_run):
    record = make_run(mlflow=mlflow.address)
    mlflow.refuses["log-inputs"] = (500, {})
    with pytest.raises(AnswerError):
        send(record)
    [run] = mlflow.runs.values()
    assert run["info"]["status"] == "RUNNING"
    mlflow.refuses.clear()
    send(record)
    assert [each["info"]["status"] for each in mlflow.runs.values()] == ["FINISHED"]


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("failed", "FAILED"),
        ("stopped", "FAILED"),
        ("interrupted", "KILLED"),
        ("killed", "KILLED"),
        ("pruned", "KILLED"),
    ],
)
def test_how_a_run_ended_is_said_in_their_words(mlflow, make_run, state, status):
    record = make_run(mlflow=mlflow.address)
    record.state, record.exit_code, record.blessed = state, 1, False
    send(record)
    [run] = mlflow.runs.values()
    assert run["info"]["status"] == status
    assert (run["tags"]["slipway.state"], run["tags"]["slipway.blessed"]) == (state, "false")


def test_many_and_long_values_keep_to_the_limits(mlflow, make_run, monkeypatch):
    monkeypatch.setattr(module, "_MOST_PARAMETERS", 1)
    monkeypatch.setattr(module, "_MOST_VALUE", 3)
    record = make_run(mlflow=mlflow.address)
    record.metrics = {"größe (m)": 1.0}
    send(record)
    [run] = mlflow.runs.values()
    assert run["params"]["evaluate.metrics"] == '["a'
    assert len(run["params"]) == 3
    assert "gr__e _m_" in {name for name, *_ in run["metrics"]}


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("train.batch_size", "train.batch_size"), ("tips/auc", "tips/auc"), ("a:b", "a_b"),
        ("a//b", "a__b"), ("../a", ".._a"), ("/a", "_a"), ("a/", "a_"),
    ],
)  # fmt: skip
def test_a_name_that_would_lead_elsewhere_is_no_path(name, taken):
    assert module._name(name) == taken


@pytest.mark.parametrize(
    ("variables", "header"),
    [
        ({}, None),
        ({"TOKEN": "hunter2"}, "Bearer hunter2"),
        ({"USERNAME": "u", "PASSWORD": "p"}, "Basic dTpw"),
        ({"TOKEN": "hunter2", "USERNAME": "u"}, "Bearer hunter2"),
    ],
)
def test_credentials_come_from_mlflows_own_variables(mlflow, make_run, monkeypatch, variables, header):
    for name, value in variables.items():
        monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", value)
    send(make_run(mlflow=mlflow.address))
    assert {headers.get("Authorization") for _, _, headers, _ in mlflow.got} == {header}


def test_a_pushed_model_is_registered_and_named_by_its_run(mlflow, make_run):
    record = make_run(mlflow=mlflow.address, pushed=True)
    send(record)
    [run] = mlflow.runs.values()
    assert run["tags"]["slipway.pushed"] == "17"
    assert run["tags"]["slipway.registered_version"] == "1"
    assert [each["name"] for each in mlflow.versions] == ["taxi"]


def test_a_resumed_run_ends_when_it_last_ended_and_keeps_its_curves(mlflow, failed_run):
    record = failed_run(mlflow=mlflow.address)
    send(record)
    record.wall_s = 1.0  # of the last time only
    with (record.folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(f'\n{{"at": "2026-11-24T04:00:00+00:00", "run": "{record.run_id}", "state": "failed"}}\n')
    send(record)
    [run] = mlflow.runs.values()
    assert run["info"]["end_time"] == 1795489200000 + 3600 * 1000
    assert sum(name == "training/loss" for name, *_ in run["metrics"]) == 2
    last = max((at, value) for name, value, at, _ in run["metrics"] if name == "wall_s")
    assert last[1] == 1.0


def test_a_run_that_is_resumed_with_other_settings_is_reported_with_both(mlflow, make_run):
    """MLflow changes no parameter; the double refuses it as MLflow does."""
    record = make_run(mlflow=mlflow.address)
    send(record)

    def resumed(**train):
        config = json.loads(record.target.target.config)
        target = replace(record.target.target, config=json.dumps({**config, "train": train}))
        record.target = replace(record.target, target=target)
        send(record)
        [run] = mlflow.runs.values()
        changed = {key: value for key, value in run["tags"].items() if "resumed_with" in key}
        return run["params"]["train.batch_size"], changed

    lost = {"slipway.resumed_with.train.hyperparameters.rate": "null"}
    now = "slipway.resumed_with.train.batch_size"
    assert resumed(batch_size=512, steps=7) == ("256", {now: "512", **lost})
    assert mlflow.runs["run0"]["params"]["train.steps"] == "7"
    assert resumed(batch_size=256, steps=7) == ("256", {now: "256", **lost})


def test_a_checksum_of_a_bucket_is_not_called_sha_256(mlflow, make_run):
    record = make_run(mlflow=mlflow.address)
    prints = {"Ingest": Fingerprint({"data:gs://b/t.csv": "AAAA 17", "data:t.csv": "5" * 64})}
    History(record.output).save_fingerprints(record.run_id, prints)
    send(record)
    [run] = mlflow.runs.values()
    assert {name: json.loads(each["profile"]) for name, each in run["datasets"].items()} == {
        "gs://b/t.csv": {"checksum": "AAAA 17"}, "t.csv": {"sha256": "5" * 64},
    }  # fmt: skip
