"""What the end of a run does: an entry, and a process that it does not wait for."""

import subprocess
import threading

import pytest

from slipway.pipeline.config.track import TrackConfig
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.tracking import enqueue, sender, spool


def test_a_run_is_left_to_the_trackers_that_its_workload_names(tmp_path, make_run):
    record = make_run(mlflow="http://127.0.0.1:1/hunter2")
    assert enqueue.leave(record)
    [entry] = spool.all_waiting(tmp_path)
    assert (entry.run_id, entry.why) == (record.run_id, {"mlflow": ""})
    assert "hunter2" not in next((tmp_path / "tracking").glob("*.json")).read_text(encoding="utf-8")


def test_each_tracker_is_a_key_of_the_workload_file():
    assert set(enqueue.TRACKERS) | {"experiment"} == set(TrackConfig.model_fields)
    assert set(enqueue.TRACKERS) == set(sender._SEND)


@pytest.mark.parametrize("track", [{}, {"mlflow": None}])
def test_without_a_tracker_nothing_is_left(tmp_path, make_run, track):
    assert not enqueue.leave(make_run(**track))
    assert not (tmp_path / "tracking").exists()


def test_a_run_of_no_workload_names_none(tmp_path):
    assert enqueue.named(RunRecord("20261124-030000-0000", "own", output=tmp_path)) == {}


def test_the_sender_is_a_process_of_its_own_without_this_ones_streams(tmp_path, monkeypatch):
    begun, waited = [], threading.Event()

    class Process:
        def __init__(self, command, **options):
            begun.append((command, options))

        def wait(self):
            waited.set()

    monkeypatch.setattr(subprocess, "Popen", Process)
    enqueue.start(tmp_path)
    assert waited.wait(60), "its end is taken notice of"
    [(command, options)] = begun
    assert command[-2:] == ["slipway.pipeline.tracking.sender", str(tmp_path)]
    assert options["start_new_session"]
    assert {options[name] for name in ("stdin", "stdout", "stderr")} == {subprocess.DEVNULL}
