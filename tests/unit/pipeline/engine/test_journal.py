"""What a run writes while it lasts, and what its nodes do."""

import errno
import json
import os
import time

import pytest

from slipway.pipeline.engine.journal import Journal, writing
from slipway.pipeline.engine.launcher import Start
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord


@pytest.fixture
def journal(tmp_path):
    history = History(tmp_path)
    record = history.new_run("toy")
    record.nodes = [NodeRecord("a/b", attempts=2, state="running")]
    return Journal(record, history, time.monotonic() - 60)


def progress_of(journal, text):
    folder = journal.record.folder / "progress"
    folder.mkdir()
    (folder / "a%2Fb").write_text(text, "utf-8")
    return journal.progress(["B", "a/b", "C"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"done": 1500, "total": 3000, "text": "loss 0.5"}, "1,500 of 3,000, loss 0.5"),
        ({"done": 3, "text": "3 files"}, "3 files"),
        ({"done": 3, "total": 4}, "3 of 4"),
    ],
)
def test_progress_is_reported_in_a_few_words(journal, line, words):
    assert progress_of(journal, json.dumps(line)) == {"a/b": words}


def test_node_that_told_nothing_yet_or_half_a_line_is_left_out_of_the_progress(journal):
    assert progress_of(journal, '{"done"') == {}


def test_attempt_begins_without_what_the_last_one_left(journal, tmp_path):
    [entry], folder = journal.record.nodes, journal.record.folder
    (folder / "left/a%2Fb/deep").mkdir(parents=True)
    (folder / "progress").mkdir()
    (folder / "progress/a%2Fb").touch()
    paths = {"progress": folder / "progress/a%2Fb", "left": folder / "left/a%2Fb", "state": tmp_path / "s"}
    start = journal.begin(entry, state=tmp_path / "s")
    assert start == Start(
        node="a/b", attempt=2, log=str(folder / "logs/a%2Fb.log"), **{k: str(v) for k, v in paths.items()}
    )
    assert not any(path.exists() for path in paths.values())
    assert entry.log == "logs/a%2Fb.log"
    assert entry.started_s >= 60, "counted from the start of the run"


def test_run_that_another_machine_began_by_a_fast_clock_has_not_lasted_less_than_nothing(journal):
    assert Journal(journal.record, journal.history, time.monotonic() + 60).wall_s == 0


def test_change_of_a_node_is_written_to_the_record_and_among_the_events(journal):
    [entry] = journal.record.nodes
    entry.why = "new"
    journal.changed(entry)
    assert journal.history.find(journal.record.run_id).nodes == [entry]
    event = json.loads((journal.record.folder / "events.jsonl").read_text("utf-8"))
    del event["at"]
    assert event == {"node": "a/b", "state": "running", "attempt": 2, "why": "new"}
    assert journal.record.wall_s >= 60


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "first make room on the disk"),
        (errno.ENOENT, "first put that folder back, which was moved or removed meanwhile"),
        (errno.EROFS, "first make that folder one that you can write to"),
        (errno.EMFILE, "first raise the limit of open files (`ulimit -n`)"),
        (errno.EIO, "first check that disk"),
    ],
)
def test_place_that_cannot_be_written_is_named_with_its_remedy(journal, number, remedy):
    with pytest.raises(PipelineError) as error, writing(journal.record):
        raise OSError(number, os.strerror(number))
    assert str(error.value) == (
        f"{journal.record.folder} cannot be written: {os.strerror(number)}.\nhint: {remedy}"
    )
