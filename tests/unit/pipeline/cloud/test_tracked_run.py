"""A followed run, handed over to trackers."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from taxi_workload import taxi_workload
from tracker_double import Collector, MlflowDouble, served

from slipway.pipeline.cloud import tracked_run
from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.follow import finish, new_record, update
from slipway.pipeline.cloud.services.service import JobState, TaskState
from slipway.pipeline.cloud.tracked_run import Followed, hand_over, keep_settings
from slipway.pipeline.commands.track import track, waiting_line
from slipway.pipeline.config.track import TrackConfig
from slipway.pipeline.report import page
from slipway.pipeline.runs.history import History
from slipway.pipeline.tracking import enqueue, spool
from slipway.pipeline.tracking.sender import send_all

RUN = "taxi-20270101-020304-ab12"
BEGAN = datetime(2027, 1, 1, 2, 3, 10, tzinfo=UTC)


def at(seconds):
    return BEGAN + timedelta(seconds=seconds)


def made(kind, **properties):
    return {"uri": f"gs://b/{kind}", "type": kind, "properties": properties}


TASKS = (
    TaskState("Ingest", "cached", outputs={"quarantine": [made("schemas.Quarantine")]}),
    TaskState("Transform", "complete", began=at(1), ended=at(21), outputs={"g": [made("TransformGraph")]}),
    TaskState("Trainer", "complete", began=at(30), ended=at(90), outputs={"model_run": [made("ModelRun")]}),
    TaskState("ModelGate", "complete", outputs={"blessing": [made("ModelBlessing", blessed=1.0)]}),
    TaskState("taxi-20270101", "complete", began=at(0), ended=at(100)),  # of the pipeline as a whole
)
FILE = {"name": "gs://b/trips.csv", "size_bytes": 12, "crc32c": "22620404"}
STATE = JobState("complete", tasks=TASKS, began=BEGAN, ended=at(100))
EPOCHS = [{"epoch": 1, "loss": 0.5, "val_loss": 0.6}, {"epoch": 2, "loss": 0.25, "val_loss": 0.5}]


@pytest.fixture
def tracker(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "hunter2")
    monkeypatch.setattr(enqueue, "start", send_all)
    with served(MlflowDouble()) as double:
        yield double


@pytest.fixture
def settings():
    """The settings of taxi, with trackers."""

    def make(*, batch_size=256, **track):
        config = taxi_workload()
        train = config.train.model_copy(update={"batch_size": batch_size})
        return config.model_copy(update={"train": train, "track": TrackConfig(**track)})

    return make


@pytest.fixture
def chosen(tmp_path):
    return CloudChoice("taxi", (), "prod", output=tmp_path / "output")


@pytest.fixture
def seen(project, tmp_path):
    """A run that was followed; its reports lie where `follow` copies them."""

    def make(state=STATE, *, is_whole=True, run=RUN):
        job = json.loads((project / "tests/data/cloud/taxi.json").read_text())
        record = new_record(job, run_id=run)
        update(record, state)
        reports = tmp_path / "copies"
        shutil.rmtree(reports, ignore_errors=True)
        reports.mkdir()
        files = {"ModelBlessing": ("verdict.json", {"metrics": {"auc": 0.9477}, "reasons": ["good"]})}
        files["ModelRun"] = ("history.json", {"epochs": EPOCHS})
        files["schemas.Quarantine"] = ("summary.json", {"files": [FILE]})
        for kind, (name, content) in files.items() if is_whole else ():
            for _, artifact in record.outputs_of(kind):
                here = reports / kind
                here.mkdir()
                (here / name).write_text(json.dumps(content), encoding="utf-8")
                artifact["uri"], artifact["copy_of"] = str(here), artifact["uri"]
        finish(record, state, wall_s=100.0)
        return Followed(record, state, reports, is_whole)

    return make


def test_trackers_get_what_the_service_told_and_what_its_artifacts_held(tracker, settings, chosen, seen):
    handed = hand_over(seen(), settings(mlflow=tracker.address), chosen=chosen)

    assert handed == "Handed to track.mlflow."
    [run] = tracker.runs.values()
    assert (run["info"]["status"], run["info"]["end_time"]) == ("FINISHED", round(at(100).timestamp() * 1000))
    assert run["params"]["train.batch_size"] == "256"
    metrics = {(name, value, step) for name, value, _, step in run["metrics"]}
    assert {("auc", 0.9477, 0), ("wall_s", 100.0, 0), ("training/val_loss", 0.5, 2)} <= metrics
    assert run["tags"]["slipway.run"] == RUN
    assert run["tags"]["slipway.blessed"] == "true"
    assert len(run["tags"]["slipway.data_digest"]) == 64
    assert run["datasets"]["gs://b/trips.csv"]["digest"] == "ImIEBA== 12"
    [report] = [content.decode() for name, content in tracker.files.items() if name.endswith("/report.html")]
    assert "Done: taxi, nothing to push." in report
    assert "Blessed: good" in report
    assert "<code>gs://b/ModelBlessing</code>" in report
    assert run["tags"]["mlflow.source.name"] == "python cloud_runner.py submit taxi --profile prod" + (
        f" --output {chosen.output}"
    )


def test_page_that_cannot_be_written_is_reported_and_the_rest_is_sent(
    tracker, settings, chosen, seen, monkeypatch, capsys
):
    def fails(*_):
        raise OSError("no room")

    monkeypatch.setattr(page, "write_page", fails)
    assert hand_over(seen(), settings(mlflow=tracker.address), chosen=chosen) == "Handed to track.mlflow."
    assert capsys.readouterr().err == "warning: no report was written: no room\n"
    assert tracker.files == {}
    [run] = tracker.runs.values()
    assert run["info"]["status"] == "FINISHED"


def test_spans_and_events_have_the_times_and_places_of_the_service(settings, chosen, seen, monkeypatch):
    monkeypatch.setattr(enqueue, "start", send_all)
    with served(Collector()) as collector:
        config = settings(openlineage=collector.address, opentelemetry=collector.address)
        assert hand_over(seen(), config, chosen=chosen) == "Handed to track.openlineage, track.opentelemetry."

    bodies = [(path, json.loads(body)) for _, path, _, body in collector.got]
    [trace] = [body for path, body in bodies if path == "/v1/traces"]
    spans = {each["name"]: each for each in trace["resourceSpans"][0]["scopeSpans"][0]["spans"]}
    assert set(spans) == {"run taxi", "Transform", "Trainer"}
    assert spans["Trainer"]["startTimeUnixNano"] == f"{round(at(30).timestamp())}{'0' * 9}"
    assert spans["run taxi"]["endTimeUnixNano"] == f"{round(at(100).timestamp())}{'0' * 9}"
    assert "slipway.attempts" not in {each["key"] for each in spans["Trainer"]["attributes"]}
    events = [body for path, body in bodies if path == "/api/v1/lineage"]
    [trained] = [e for e in events if e["job"]["name"] == "taxi.Trainer" and e["eventType"] == "COMPLETE"]
    assert [(each["namespace"], each["name"]) for each in trained["outputs"]] == [("gs://b", "ModelRun")]
    assert ("gs://b", "TransformGraph") in [(each["namespace"], each["name"]) for each in trained["inputs"]]
    [began] = [e for e in events if e["job"]["name"] == "taxi" and e["eventType"] == "START"]
    assert [(each["namespace"], each["name"]) for each in began["inputs"]] == [("gs://b", "trips.csv")]


def test_second_follow_sends_nothing(tracker, settings, chosen, seen):
    config = settings(mlflow=tracker.address)
    hand_over(seen(), config, chosen=chosen)
    sent = len(tracker.got)

    assert hand_over(seen(), config, chosen=chosen) == "Handed to track.mlflow before; nothing is sent twice."
    assert len(tracker.got) == sent


def test_tracker_that_is_down_gets_the_run_later_by_the_command_track(tracker, settings, chosen, seen):
    tracker.refuses["/experiments/"] = (503, {})

    assert hand_over(seen(), settings(mlflow=tracker.address), chosen=chosen) == "Handed to track.mlflow."
    assert waiting_line(chosen.output).startswith("1 run not yet sent to a tracker")
    assert track(chosen.output).text() == f"{RUN}: mlflow answered 503"
    tracker.refuses.clear()
    assert track(chosen.output).is_all
    assert len(tracker.runs) == 1


def test_settings_are_those_of_the_submission_and_trackers_those_of_the_command_that_follows(
    tracker, settings, chosen, seen
):
    submitted = settings(batch_size=64, mlflow="http://127.0.0.1:9")
    assert keep_settings(submitted, RUN, chosen=chosen) == ""

    hand_over(seen(), settings(batch_size=32, mlflow=tracker.address), chosen=chosen)

    [run] = tracker.runs.values()
    assert run["params"]["train.batch_size"] == "64"


def test_without_a_tracker_nothing_is_kept_or_told(settings, chosen, seen):
    assert keep_settings(settings(), RUN, chosen=chosen) == ""
    assert hand_over(seen(), settings(), chosen=chosen) == ""
    assert not chosen.output.exists()


def test_run_whose_reports_were_not_readable_is_completed_once_they_are(tracker, settings, chosen, seen):
    config = settings(mlflow=tracker.address)

    assert hand_over(seen(is_whole=False), config, chosen=chosen) == "Handed to track.mlflow."
    [run] = tracker.runs.values()
    assert "auc" not in {name for name, *_ in run["metrics"]}
    assert "nothing is sent twice" in hand_over(seen(is_whole=False), config, chosen=chosen)
    assert hand_over(seen(), config, chosen=chosen) == "Handed to track.mlflow."
    assert len(tracker.runs) == 1
    assert "auc" in {name for name, *_ in run["metrics"]}
    assert "nothing is sent twice" in hand_over(seen(), config, chosen=chosen)


def test_command_that_was_killed_while_it_handed_over_loses_nothing(
    tracker, settings, chosen, seen, monkeypatch
):
    config, leave = settings(mlflow=tracker.address), enqueue.leave

    def killed(record):
        leave(record)
        raise KeyboardInterrupt

    monkeypatch.setattr(enqueue, "leave", killed)
    with pytest.raises(KeyboardInterrupt):
        hand_over(seen(), config, chosen=chosen)
    [entry] = send_all(chosen.output)  # another run's sender
    assert entry.why == {"mlflow": "is sent when the resumed run has ended"}
    monkeypatch.setattr(enqueue, "leave", leave)
    assert hand_over(seen(), config, chosen=chosen) == "Handed to track.mlflow."
    assert len(tracker.runs) == 1


def test_command_that_was_killed_while_it_completed_a_run_loses_nothing_either(
    tracker, settings, chosen, seen, monkeypatch
):
    config = settings(mlflow=tracker.address)
    hand_over(seen(is_whole=False), config, chosen=chosen)

    def killed(_seen):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tracked_run, "_events", killed)
        with pytest.raises(KeyboardInterrupt):
            hand_over(seen(), config, chosen=chosen)
    assert hand_over(seen(), config, chosen=chosen) == "Handed to track.mlflow."
    [run] = tracker.runs.values()
    assert "auc" in {name for name, *_ in run["metrics"]}


def test_damaged_settings_are_reported_and_nothing_fails(settings, chosen, seen):
    config = settings(mlflow="http://127.0.0.1:9")
    keep_settings(config, RUN, chosen=chosen)
    path = History(chosen.output / spool.CLOUD).folder(RUN) / "run.json"
    damaged = json.loads(path.read_text())
    damaged["target"]["config"] = "{"
    path.write_text(json.dumps(damaged))

    assert "not sent to track.mlflow: JSONDecodeError: " in hand_over(seen(), config, chosen=chosen)


def test_cancelled_run_is_one_that_was_ended(tracker, settings, chosen, seen):
    state = replace(STATE, phase="cancelled", tasks=TASKS[:2])

    hand_over(seen(state), settings(mlflow=tracker.address), chosen=chosen)

    [run] = tracker.runs.values()
    assert run["info"]["status"] == "KILLED"


def test_service_that_tells_no_times_is_no_obstacle(tracker, settings, chosen, seen):
    tasks = tuple(replace(task, began=None, ended=None) for task in TASKS)

    hand_over(seen(JobState("complete", tasks=tasks)), settings(mlflow=tracker.address), chosen=chosen)

    [run] = tracker.runs.values()
    assert run["info"]["status"] == "FINISHED"


def test_run_of_another_workload_is_not_sent_with_the_settings_of_this_one(settings, chosen, seen):
    config = settings(mlflow="http://127.0.0.1:9").model_copy(update={"name": "fares"})

    told = hand_over(seen(), config, chosen=chosen)

    assert told == "not sent to track.mlflow: it is a run of taxi, not of fares"
    assert not chosen.output.exists()


@pytest.mark.parametrize("name", ["../../elsewhere", ".hidden", "a/b", ""])
def test_name_that_leads_elsewhere_is_no_folder(settings, chosen, seen, name):
    config = settings(mlflow="http://127.0.0.1:9")

    assert "cannot be the name of a folder" in hand_over(seen(run=name), config, chosen=chosen)
    assert keep_settings(config, name, chosen=chosen) == ""
    assert not chosen.output.exists()


def test_folder_that_cannot_be_written_is_reported_and_nothing_fails(settings, chosen, seen):
    chosen.output.write_text("a file")
    config = settings(mlflow="http://127.0.0.1:9")

    told = hand_over(seen(), config, chosen=chosen)

    assert told.startswith("not sent to track.mlflow: ")
    assert f"again: python cloud_runner.py follow {RUN} taxi --profile prod --output" in told
    assert keep_settings(config, RUN, chosen=chosen).startswith("warning: a later follow takes")


def test_two_that_follow_at_once_hand_it_over_one_after_the_other(settings, chosen, seen, monkeypatch):
    monkeypatch.setattr(tracked_run, "_LOCK_WAIT_S", 0.0)
    folder = History(chosen.output / spool.CLOUD).folder(RUN)
    with tracked_run.locked(folder, run_id="follow"):
        told = hand_over(seen(), settings(mlflow="http://127.0.0.1:9"), chosen=chosen)
    assert "is in use by" in told


def test_nothing_that_is_kept_holds_a_credential_and_local_runs_stay_alone(tracker, settings, chosen, seen):
    hand_over(seen(), settings(mlflow=tracker.address), chosen=chosen)

    assert {headers["Authorization"] for _, _, headers, _ in tracker.got} == {"Bearer hunter2"}
    kept = [path for path in chosen.output.rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if b"hunter2" in path.read_bytes()]
    assert list(History(chosen.output).runs()) == []
