"""The command `track`, and the line about it that other commands show."""

import errno
import json
import os

import pytest

from slipway.pipeline.commands.track import Sent, track, waiting_line
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.run_target import RecordedRequest, WorkloadRun
from slipway.pipeline.tracking import spool
from slipway.pipeline.tracking.spool import Waiting

NOBODY = {"track": {"mlflow": "http://127.0.0.1:9"}}
ENTRY = Waiting("20261124-030000-0000", 0, {"mlflow": "answered 500"})


def test_nothing_that_waits_is_said_so(tmp_path):
    sent = track(tmp_path)
    assert (sent.is_all, sent.text()) == (True, "All runs were sent to their trackers.")
    assert waiting_line(tmp_path) == ""


def test_nothing_is_said_of_runs_that_cannot_be_seen(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="none does not exist"):
        track(tmp_path / "none")

    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(PermissionError, match="tracking"):
        track(tmp_path)


def test_what_waits_on_is_shown_with_what_was_said():
    sent = Sent([ENTRY])
    assert (sent.is_all, sent.text()) == (False, "20261124-030000-0000: mlflow answered 500")
    assert sent.to_json() == {
        "sending": False,
        "waiting": [{"run_id": ENTRY.run_id, "resumed": 0, "why": {"mlflow": "answered 500"}}],
    }


def test_another_sender_is_named(tmp_path):
    spool.put(tmp_path, ENTRY)
    with spool.alone(tmp_path):
        sent = track(tmp_path)
    assert not sent.is_all
    assert sent.text().startswith(f"Another process is sending right now: process {os.getpid()} on ")


@pytest.mark.parametrize(("count", "words"), [(1, "1 run not yet"), (2, "2 runs not yet")])
def test_other_commands_name_the_command_that_sends(tmp_path, count, words):
    for number in range(count):
        spool.put(tmp_path, Waiting(f"20261124-030000-000{number}", 0, {"mlflow": ""}))
    assert waiting_line(tmp_path).startswith(words)
    assert f"track --output {tmp_path}" in waiting_line(tmp_path)


def test_the_command_says_what_still_waits_by_its_exit_code(tmp_path, local_runner, warm_runner):
    done = local_runner("track", "--output", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "All runs were sent to their trackers.\n", "")
    record = History(tmp_path).new_run("taxi", RecordedRequest(target=WorkloadRun(config=json.dumps(NOBODY))))
    record.state = "failed"
    History(tmp_path).save(record)
    spool.put(tmp_path, Waiting(record.run_id, 0, {"mlflow": ""}))
    listed = warm_runner("runs", "--output", str(tmp_path))
    assert listed.stderr.startswith("1 run not yet sent to a tracker: ")
    done = warm_runner("track", "--output", str(tmp_path), "--json")
    assert done.returncode == 1
    [waiting] = json.loads(done.stdout)["waiting"]
    assert waiting["why"] == {"mlflow": "could not be reached (ConnectionError)"}


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "make room on the disk"),
        (errno.EACCES, "make that folder one that you can write to"),
        (errno.EMFILE, "raise the limit of open files (`ulimit -n`)"),
    ],
)
def test_a_folder_that_cannot_be_written_is_reported_with_what_helps(tmp_path, monkeypatch, code, remedy):
    def refuse(*_):
        raise OSError(code, "not now")

    spool.put(tmp_path, ENTRY)
    monkeypatch.setattr(spool.os, "open", refuse)
    with pytest.raises(PipelineError, match="cannot be written: not now") as told:
        track(tmp_path)
    assert told.value.hint == remedy
