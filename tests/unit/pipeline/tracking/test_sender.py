"""Sending: once each, whatever fails; what fails waits for the next time."""

import shutil
import subprocess
import sys

import pytest

from slipway.pipeline.runs.history import History
from slipway.pipeline.tracking import enqueue, sender, spool
from slipway.pipeline.tracking import mlflow as tracker
from slipway.pipeline.tracking.sender import send_all
from slipway.pipeline.tracking.spool import Waiting


@pytest.fixture
def left(make_run):
    """Makes a run, and leaves it to its trackers."""

    def leave(**track):
        record = make_run(**track)
        enqueue.leave(record)
        return record

    return leave


def test_what_waits_is_sent_and_waits_no_more(tmp_path, mlflow, left):
    records = [left(mlflow=mlflow.address), left(mlflow=mlflow.address)]
    assert send_all(tmp_path) == []
    assert [run["tags"]["slipway.run"] for run in mlflow.runs.values()] == [each.run_id for each in records]


def test_a_server_that_is_away_is_asked_once_and_its_runs_are_sent_when_it_is_back(tmp_path, mlflow, left):
    mlflow.refuses[""] = (503, {})
    runs = [left(mlflow=mlflow.address).run_id for _ in range(3)]
    assert send_all(tmp_path) == [Waiting(run, 0, {"mlflow": "answered 503"}) for run in runs]
    assert len(mlflow.got) == 1
    mlflow.refuses.clear()
    assert send_all(tmp_path) == []
    assert len(mlflow.runs) == 3


def test_after_nights_without_a_server_it_gets_the_runs_from_the_oldest_on(tmp_path, mlflow, left):
    """It numbers the models as they come: the latest version would be of the first night else."""
    mlflow.refuses[""] = (503, {})
    runs = []
    for _ in range(3):
        runs.append(left(mlflow=mlflow.address).run_id)
        send_all(tmp_path)
    mlflow.refuses.clear()
    runs.append(left(mlflow=mlflow.address).run_id)
    assert send_all(tmp_path) == []
    assert [run["tags"]["slipway.run"] for run in mlflow.runs.values()] == runs


def test_each_tracker_is_reported_and_one_that_is_away_keeps_no_other_from_it(
    tmp_path, mlflow, collector, left
):
    mlflow.refuses[""] = (503, {})
    left(mlflow=mlflow.address, openlineage=collector.address, opentelemetry=collector.address)
    [entry] = send_all(tmp_path)
    assert entry.why == {"mlflow": "answered 503"}
    assert set(collector.paths()) == {"/api/v1/lineage", "/v1/traces"}
    told = len(collector.got)
    mlflow.refuses.clear()
    assert send_all(tmp_path) == []
    assert len(collector.got) == told, "they are told once"


def test_one_that_refuses_a_run_is_asked_for_the_next(tmp_path, mlflow, left):
    mlflow.refuses["get-by-name"] = (403, {})
    left(mlflow=mlflow.address), left(mlflow=mlflow.address)
    assert [each.why for each in send_all(tmp_path)] == [{"mlflow": "answered 403"}] * 2
    assert len(mlflow.got) == 2


def test_a_file_that_is_gone_or_damaged_is_reported_and_nothing_ends(tmp_path, mlflow, left):
    record = left(mlflow=mlflow.address)
    (record.folder / "fingerprints.json").write_text("{", encoding="utf-8")
    [entry] = send_all(tmp_path)
    assert entry.why["mlflow"].startswith("was not sent the run: ")
    mlflow.refuses["runs/search"] = (200, {"runs": [1]})
    [entry] = send_all(tmp_path)
    assert entry.why["mlflow"].startswith("was not sent the run: TypeError: ")


def test_a_run_that_is_gone_is_not_waited_for(tmp_path, mlflow, left):
    shutil.rmtree(left(mlflow=mlflow.address).folder)
    assert send_all(tmp_path) == []
    assert mlflow.got == []


def test_a_tracker_that_this_version_does_not_know_is_not_waited_for(tmp_path, left):
    record = left(mlflow="http://127.0.0.1:1")
    spool.put(tmp_path, Waiting(record.run_id, 0, {"other": ""}))
    assert send_all(tmp_path) == []


def test_while_another_process_sends_nothing_is_sent(tmp_path, mlflow, left):
    left(mlflow=mlflow.address)
    with spool.alone(tmp_path):
        assert send_all(tmp_path) is None
    assert mlflow.got == []


def test_what_comes_while_it_sends_is_sent_too(tmp_path, mlflow, left, monkeypatch):
    first, send = left(mlflow=mlflow.address), tracker.Mlflow.send

    def and_another_ends(self, record):
        send(self, record)
        if record.run_id == first.run_id:
            left(mlflow=mlflow.address)

    monkeypatch.setattr(tracker.Mlflow, "send", and_another_ends)
    assert send_all(tmp_path) == []
    assert len(mlflow.runs) == 2


def test_a_run_that_is_resumed_and_ends_while_it_is_sent_is_reported_again(
    tmp_path, mlflow, left, monkeypatch
):
    left(mlflow=mlflow.address)
    told = []

    def and_it_ends_again(self, record):
        told.append(record.run_id)
        if len(told) == 1:
            spool.put(tmp_path, Waiting(record.run_id, 1, {"mlflow": ""}))

    monkeypatch.setattr(tracker.Mlflow, "send", and_it_ends_again)
    assert send_all(tmp_path) == []
    assert len(told) == 2


def test_a_run_that_is_sent_before_its_page_is_written_is_sent_again_with_it(
    tmp_path, mlflow, make_run, monkeypatch
):
    record = make_run(mlflow=mlflow.address)
    enqueue.leave(record, without_page=True)
    sent = []

    def send_late(run, address):
        sent.append(run.run_id)
        enqueue.leave(run)  # as the process that wrote the page meanwhile
        tracker.send(run, address)

    monkeypatch.setitem(sender._SEND, "mlflow", send_late)
    assert send_all(tmp_path) == []
    assert sent == [record.run_id, record.run_id]


def test_a_run_in_progress_is_told_of_at_its_end(tmp_path, mlflow, left):
    record = left(mlflow=mlflow.address)
    record.state = "running"
    History(tmp_path).save(record)
    [entry] = send_all(tmp_path)
    assert "has ended" in entry.why["mlflow"]
    assert mlflow.got == []


def test_a_run_whose_record_is_damaged_or_gone_waits_with_the_reason(tmp_path, mlflow, left):
    damaged, bare = (left(mlflow=mlflow.address).folder / "run.json" for _ in range(2))
    damaged.write_text("{", encoding="utf-8")
    bare.unlink()
    first, second = send_all(tmp_path)
    assert "cannot be read" in first.why["mlflow"]
    assert "has no record" in second.why["mlflow"]


def test_a_run_that_a_server_cannot_take_keeps_no_other_from_it(tmp_path, mlflow, left):
    mlflow.refuses["runs/log-batch"] = (504, {})
    left(mlflow=mlflow.address), left(mlflow=mlflow.address)
    assert [each.why for each in send_all(tmp_path)] == [{"mlflow": "answered 504"}] * 2
    assert mlflow.paths().count("/api/2.0/mlflow/runs/create") == 2


def test_a_run_over_which_a_server_breaks_at_once_is_sent_after_the_others(tmp_path, collector, left):
    """A trace is one request: that one run is the cause shows only when another is taken."""
    first, second = (left(opentelemetry=collector.address).run_id for _ in range(2))

    def answer(_method, _path, _query, body):
        return (504 if first.encode() in body else 200), {}

    collector.answer = answer
    assert [each.run_id for each in send_all(tmp_path)] == [first, second]
    assert [each.run_id for each in send_all(tmp_path)] == [first]


def test_a_trace_that_is_taken_in_part_is_not_sent_again(tmp_path, collector, left, capsys):
    left(opentelemetry=collector.address)
    collector.answer = lambda *_: (200, {"partialSuccess": {"rejectedSpans": "1"}})
    assert send_all(tmp_path) == []
    assert "opentelemetry rejected 1 spans" in capsys.readouterr().err


def test_on_a_full_disk_the_others_are_reported_all_the_same(tmp_path, mlflow, left, monkeypatch):
    first, put = left(mlflow=mlflow.address), spool.put
    left(mlflow=mlflow.address)

    def no_room(output, entry):
        if entry.run_id == first.run_id:
            raise OSError(28, "No space left on device")
        put(output, entry)

    monkeypatch.setattr(spool, "put", no_room)
    with pytest.raises(OSError, match="No space left"):
        send_all(tmp_path)
    assert len(mlflow.runs) == 2
    assert [each.run_id for each in spool.all_waiting(tmp_path)] == [first.run_id]


def test_the_process_sends_and_ends(tmp_path, mlflow, left):
    left(mlflow=mlflow.address)
    command = [sys.executable, "-m", sender.__name__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert spool.all_waiting(tmp_path) == []
    assert len(mlflow.runs) == 1
