"""Who hears of a run's end: the page, and whom the workload names."""

import pytest

from slipway.pipeline.commands import end_listeners
from slipway.pipeline.commands.end_listeners import END_LISTENERS
from slipway.pipeline.engine.journal import Journal
from slipway.pipeline.engine.run_end import Ending, LateInterrupt, close
from slipway.pipeline.report import page
from slipway.pipeline.runs.history import History
from slipway.pipeline.screen.display import RunDisplay
from slipway.pipeline.tracking import enqueue, spool


def end(record, history, *, interrupted=False):
    close(Journal(record, history, 0.0), Ending(interrupted=interrupted), RunDisplay(), END_LISTENERS)


def test_a_page_that_cannot_be_written_is_one_line_and_the_run_ends_as_it_has(tmp_path, capsys, monkeypatch):
    def fails(*_):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(page, "write_page", fails)
    history = History(tmp_path)
    record = history.new_run("taxi")

    end(record, history)

    told = capsys.readouterr().err
    assert (record.state, record.exit_code) == ("complete", 0)
    assert told.count("\n") == 1
    assert "no report was written: RuntimeError: first line second line" in told


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_run_leaves_its_page(tmp_path, capsys, interrupted):
    history = History(tmp_path)
    record = history.new_run("taxi")

    end(record, history, interrupted=interrupted)

    assert (history.folder(record.run_id) / "report.html").is_file()
    assert capsys.readouterr().err == ""


def test_whom_nobody_can_reach_is_one_line_and_the_run_ends_as_it_has(tmp_path, capsys, monkeypatch):
    def fails(_record):
        yield "the address did not answer"
        raise RuntimeError("no line")

    monkeypatch.setattr(end_listeners, "notify", fails)
    history = History(tmp_path)
    record = history.new_run("taxi")

    end(record, history)

    assert record.state == "complete"
    assert capsys.readouterr().err.splitlines() == [
        "warning: the address did not answer.", "warning: the notification failed: RuntimeError: no line",
    ]  # fmt: skip


def test_ctrl_c_while_a_notification_is_sent_keeps_no_tracker_from_the_run(tmp_path, monkeypatch):
    def cut_short(_record):
        raise KeyboardInterrupt

    begun, history = [], History(tmp_path)
    monkeypatch.setattr(end_listeners, "notify", cut_short)
    monkeypatch.setattr(enqueue, "leave", lambda _record, **_: True)
    monkeypatch.setattr(enqueue, "start", begun.append)
    with pytest.raises(KeyboardInterrupt):
        end(history.new_run("taxi"), history)
    assert begun == [tmp_path]


def test_a_run_is_left_to_trackers_and_a_failure_is_one_line(tmp_path, capsys, monkeypatch):
    begun, history = [], History(tmp_path)
    record = history.new_run("taxi")
    monkeypatch.setattr(enqueue, "leave", lambda record, **_: record.workload == "taxi")
    monkeypatch.setattr(enqueue, "start", begun.append)

    end(record, history)
    assert begun == [tmp_path]
    assert capsys.readouterr().err == ""

    def fails(_record, **_):
        raise OSError("no\nroom")

    monkeypatch.setattr(enqueue, "leave", fails)
    end(record, history)
    assert record.state == "complete"
    assert capsys.readouterr().err == "warning: this run is sent to no tracker: OSError: no room\n"

    monkeypatch.setattr(enqueue, "leave", lambda _record, **_: True)
    monkeypatch.setattr(enqueue, "start", fails)
    end(record, history)
    told = capsys.readouterr().err
    assert told.startswith("warning: this run is not sent to trackers until ")
    assert f"track --output {tmp_path}: OSError: no room\n" in told


def test_a_process_that_is_killed_while_it_writes_the_page_has_left_the_run_to_the_trackers(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(enqueue, "named", lambda _record: {"mlflow": "http://127.0.0.1:1"})
    monkeypatch.setattr(enqueue, "start", lambda _output: None)
    seen, history = [], History(tmp_path)
    monkeypatch.setattr(page, "write_page", lambda *_: seen.extend(spool.all_waiting(tmp_path)))
    record = history.new_run("taxi")

    end(record, history)

    assert [(each.run_id, each.without_page) for each in seen] == [(record.run_id, True)]
    assert [each.without_page for each in spool.all_waiting(tmp_path)] == [False]


def test_ctrl_c_while_the_page_is_written_is_one_line_and_cuts_nothing_else_short(
    tmp_path, capsys, monkeypatch
):
    def cut_short(*_):
        raise KeyboardInterrupt

    sent, history = [], History(tmp_path)
    monkeypatch.setattr(page, "write_page", cut_short)
    monkeypatch.setattr(end_listeners, "notify", lambda record: sent.append(record.state) or ())
    monkeypatch.setattr(enqueue, "leave", lambda _record, **_: True)
    monkeypatch.setattr(enqueue, "start", sent.append)

    with pytest.raises(LateInterrupt) as late:
        end(history.new_run("taxi"), history)

    assert late.value.exit_code == 0
    assert sent == [tmp_path, "complete"]
    assert "no report was written: interrupted; again: " in capsys.readouterr().err
