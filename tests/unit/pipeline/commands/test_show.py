"""What the commands make of the records of runs."""

from pathlib import Path

import pytest

from slipway.pipeline.commands import run as running
from slipway.pipeline.commands import show
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import locked
from slipway.pipeline.runs.record import NodeRecord
from slipway.pipeline.runs.run_target import ModuleRun, RecordedRequest


@pytest.fixture
def begun(tmp_path):
    """A run that wrote its record 0.2 s after its start, and has gone on for 95 s."""
    history = History(tmp_path)
    record = history.new_run("taxi")
    record.wall_s, record.nodes = 0.2, [NodeRecord("Trainer", state="running")]
    history.save(record)
    history.note_alive(record.run_id, 61.0)
    history.note_alive(record.run_id, 95.25)
    return record


def test_a_killed_run_shows_the_time_that_it_ran(begun, tmp_path):
    [told] = show.runs(tmp_path)
    assert (told.state, told.wall_s) == ("killed", 95.25)
    assert "killed, 95 s," in show.show_text(show.find(begun.run_id, tmp_path))


@pytest.mark.parametrize("look", [show.runs, show.listed])
def test_a_run_in_steps_is_killed_if_its_begin_was_before_it_had_a_plan(tmp_path, look):
    history = History(tmp_path)
    begun, between_steps = history.new_run("taxi"), history.new_run("taxi")
    begun.in_steps = between_steps.in_steps = True
    between_steps.nodes = [NodeRecord("Trainer", state="waiting")]
    history.save(begun)
    history.save(between_steps)
    with locked(tmp_path, run_id="step begin", shared=True):
        assert [each.state for each in look(tmp_path)] == ["running", "running"]
    assert [each.state for each in look(tmp_path)] == ["running", "killed"]
    told = show.show_text(show.find(begun.run_id, tmp_path))
    assert told.splitlines()[-1].endswith(f" step begin --output {tmp_path}")


def test_where_there_is_no_run_the_folder_that_was_looked_at_is_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert show.runs_text(show.runs(Path("output")), Path("output")) == (
        f"No runs yet in {tmp_path / 'output'}."
    )


def test_a_run_that_goes_on_shows_the_time_so_far(begun, tmp_path):
    with locked(tmp_path, run_id=begun.run_id):
        [told] = show.runs(tmp_path)
    assert (told.state, told.wall_s) == ("running", 95.25)


@pytest.mark.parametrize(
    ("holder", "state"), [("20261129-000000-ffff", "killed"), ("sweep 20261129-000000-ffff", "running")]
)
def test_a_killed_run_does_not_go_on_because_another_is_at_work(begun, tmp_path, holder, state):
    """The runs of a sweep side by side hold one lock, under its name."""
    with locked(tmp_path, run_id=holder):
        [told] = show.runs(tmp_path)
    assert told.state == state


def test_a_run_that_ends_while_it_is_looked_at_is_not_called_killed(begun, tmp_path, monkeypatch):
    history = History(tmp_path)

    def is_at_work(*_):
        ended = history.find(begun.run_id)
        ended.state, ended.wall_s = "complete", 96.0
        history.save(ended)
        return False

    monkeypatch.setattr(show, "is_at_work", is_at_work)
    found = show.find(begun.run_id, tmp_path)
    assert (found.state, found.wall_s, found.output) == ("complete", 96.0, tmp_path)


@pytest.mark.parametrize("note", [None, "", "95.2 half a"])
def test_a_run_that_was_killed_before_it_noted_its_time_shows_that_of_its_record(begun, tmp_path, note):
    file = tmp_path / "runs" / begun.run_id / "alive_s"
    file.unlink() if note is None else file.write_text(note)
    [told] = show.runs(tmp_path)
    assert (told.state, told.wall_s) == ("killed", 0.2)


def test_a_run_that_ended_keeps_the_time_of_its_record(begun, tmp_path):
    begun.state, begun.wall_s = "complete", 94.0
    History(tmp_path).save(begun)
    [told] = show.runs(tmp_path)
    assert told.wall_s == 94.0


def test_resume_of_a_complete_run_says_where_its_result_is_and_ends_well(begun, tmp_path, capsys):
    begun.state, begun.pushed = "complete", {"version": "17", "path": "/srv/taxi/17"}
    History(tmp_path).save(begun)
    assert running.resume(None, output=tmp_path, jobs=None) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[:2] == [
        f"Run {begun.run_id} is complete: there is nothing to resume.",
        "Pushed: taxi version 17 -> /srv/taxi/17",
    ]


def test_resume_of_a_run_whose_model_was_not_good_enough_says_where_its_checks_are(begun, tmp_path):
    begun.state = "stopped"
    History(tmp_path).save(begun)
    with pytest.raises(UsageError, match="is stopped: there is nothing to resume") as refused:
        running.resume(None, output=tmp_path, jobs=None)
    assert f"show {begun.run_id}" in refused.value.hint


def test_damaged_record_is_reported_beside_the_runs_that_can_be_listed(begun, tmp_path, capsys):
    path = tmp_path / "runs" / "20990101-000000-abcd" / "run.json"
    path.parent.mkdir()
    path.write_text('{"nodes": [1]}', encoding="utf-8")
    assert [run.run_id for run in show.runs(tmp_path)] == [begun.run_id]
    told = capsys.readouterr().err
    assert told == f"warning: {path} cannot be read: run_id is missing; it does not count as a run.\n"
    with pytest.raises(UsageError, match="cannot be read"):
        running.resume(None, output=tmp_path, jobs=None)


def test_run_in_a_folder_that_was_moved_keeps_its_verdicts_and_names_the_folder_as_it_is(begun, tmp_path):
    begun.state, begun.target = (
        "stopped",
        RecordedRequest(output=Path("/gone"), target=ModuleRun(output=Path("/gone"), pipeline="a:b")),
    )
    begun.nodes = [NodeRecord("DataGate", state="failed", is_stop=True, error={"message": "drift"})]
    History(tmp_path).save(begun)
    History(tmp_path).keep_verdict(begun.run_id, "DataGate", {"message": "drift", "lines": ["fare: 0.4"]})
    found = show.find(None, tmp_path)
    assert found.target == RecordedRequest(output=tmp_path, target=ModuleRun(output=tmp_path, pipeline="a:b"))
    assert "    fare: 0.4" in show.show_text(found).splitlines()
    assert History(tmp_path).find(None).target.output == Path("/gone")


def test_a_pruned_run_is_listed_as_pruned_and_shows_how_to_train_on(begun, tmp_path):
    begun.state, begun.exit_code = "pruned", 130
    History(tmp_path).save(begun)
    assert "  pruned  " in show.runs_text(show.runs(tmp_path), tmp_path)
    assert f"resume {begun.run_id}" in show.show_text(show.find(None, tmp_path))


def test_a_failed_run_shows_where_it_failed_what_helps_and_the_end_of_the_log(begun, tmp_path):
    """Whoever is woken by a message has no more than this: the run's own screen was a scheduler's."""
    trainer = begun.nodes[0]
    trainer.state, trainer.log = "failed", "logs/Trainer.log"
    trainer.error = {"message": "ValueError: no", "where": "model.py:9", "hint": "say yes"}
    begun.state = "failed"
    (begun.folder / trainer.log).write_text("first\n" + "x" * 2_000 + "\nlast line\n", encoding="utf-8")
    History(tmp_path).save(begun)
    told = show.show_text(show.find(None, tmp_path)).splitlines()
    assert "log       Trainer, its last lines:" in told
    assert "    last line" in told
    assert "    first" not in told
    assert "  Trainer: model.py:9: ValueError: no" in told
    assert "    hint: say yes" in told
    assert told[-1].startswith("hint: ")
    assert f"resume {begun.run_id}" in told[-1]


def test_a_run_that_failed_before_a_node_began_shows_why(begun, tmp_path):
    begun.state, begun.nodes, begun.error = (
        "failed",
        [],
        {"message": "the disk is full.", "hint": "make room"},
    )
    History(tmp_path).save(begun)
    told = show.show_text(show.find(None, tmp_path)).splitlines()
    assert told[1:4] == [
        "Failed: the engine, after 0 of 0 nodes. What is finished is kept.",
        "  the disk is full.",
        "    hint: make room",
    ]
    begun.in_steps = True
    History(tmp_path).save(begun)
    assert " step begin " in show.show_text(show.find(None, tmp_path)).splitlines()[-1]
