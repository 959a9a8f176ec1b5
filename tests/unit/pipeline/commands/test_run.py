"""What `run` and `plan` say before they begin, and what steps are forked from."""

import contextlib
from types import SimpleNamespace

import pytest

from slipway.pipeline.commands import run
from slipway.pipeline.commands.end_listeners import END_LISTENERS
from slipway.pipeline.commands.run import moved_lines
from slipway.pipeline.engine import local_run, stepwise_run
from slipway.pipeline.engine.processes import standby
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.plan import run_request
from slipway.pipeline.plan.decide import Decision
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord


def test_a_moved_output_folder_is_reported_once_with_the_link_that_keeps_its_results(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new one"
    place = old / "artifacts/taxi/Trainer/model/7"
    place.mkdir(parents=True)
    history = History(old)
    record = history.new_run("taxi", run_id="20261120-000000-0001")
    made = {"uri": str(place), "type": "Model", "properties": {}}
    record.nodes = [NodeRecord("Trainer", "Trainer", state="complete", outputs={"model": [made]})]
    history.save(record)
    assert moved_lines("taxi", old) == []
    old.rename(new)
    told, hint = moved_lines("taxi", new)
    assert told.startswith(f"{new} was moved here from {old}, where ML Metadata looks")
    assert hint == f"hint: ln -s '{new}' {old}"
    assert moved_lines("digits", new) == []
    old.symlink_to(new)
    assert moved_lines("taxi", new) == []


def test_steps_are_forked_from_a_warm_process_that_waits(monkeypatch, tmp_path):
    record, used = History(tmp_path).new_run("taxi"), []
    record.nodes = [NodeRecord("Trainer", "Trainer", state="failed", why="first run")]

    def taken(result):
        return lambda *_, warm, **__: used.append(warm) or result

    monkeypatch.setattr(standby, "find", lambda: contextlib.nullcontext("it"))
    monkeypatch.setattr(stepwise_run, "begin", taken(record))
    monkeypatch.setattr(stepwise_run, "run_node", taken((record, 3)))
    asked = SimpleNamespace(check_notify=lambda: None)
    assert run.begin(asked, airflow="") == record.run_id
    assert run.run_node(record.run_id, "Trainer", output=tmp_path) == 3
    assert used == ["it", "it"]


@pytest.mark.parametrize(
    "begins", [run.run, lambda asked: run.begin(asked, airflow="")], ids=["run", "begin"]
)
def test_a_run_that_could_tell_nobody_of_its_end_says_so_when_it_begins_and_goes_on(
    monkeypatch, tmp_path, capsys, begins
):
    """Nothing that is wrong with a notification changes a run, and a night would end without a message."""

    def silent():
        raise ConfigError("notify.webhook_env: HOOK is not set", hint="set it")

    def began(*_, **__):
        err = capsys.readouterr().err
        assert "warning: notify.webhook_env: HOOK is not set: nobody will be told" in err
        assert err.endswith("\nhint: set it\n")
        record = History(tmp_path).new_run("taxi")
        record.exit_code = 0
        return record

    monkeypatch.setattr(stepwise_run, "begin", began)
    monkeypatch.setattr(local_run, "execute", began)
    monkeypatch.setattr(standby, "find", lambda: None)
    assert begins(SimpleNamespace(check_notify=silent, workload="taxi", output=tmp_path)) is not None


def test_run_that_another_program_takes_in_steps_is_told_at_its_end_as_any_run(monkeypatch, tmp_path):
    """Airflow's last task calls this: so trackers get its runs, too."""
    record, heard = History(tmp_path).new_run("taxi"), []
    record.exit_code = 3

    def closed(run_id, *, output, display, listeners):
        heard.append((run_id, output, listeners))
        return record

    monkeypatch.setattr(stepwise_run, "finish", closed)
    assert run.finish(record.run_id, output=tmp_path) == 3
    assert heard == [(record.run_id, tmp_path, END_LISTENERS)]


@pytest.mark.parametrize(("action", "left"), [("run", [7]), ("reuse", [])])
def test_plan_in_which_a_node_would_run_leaves_a_warm_process_and_is_forked_from_one(
    monkeypatch, tmp_path, action, left
):
    graph = Graph("taxi", (Node("Ingest", "Ingest", ()),))
    used, minutes = [], []

    def plan_only(asked, history, *, warm):
        used.append(warm)
        return SimpleNamespace(graph=graph, decisions={"Ingest": Decision("Ingest", action, "why")})

    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("SLIPWAY_WARM_MINUTES", "7")
    monkeypatch.setattr("slipway.pipeline.commands.warm.leave", lambda each: minutes.append(each) or "")
    monkeypatch.setattr("slipway.pipeline.engine.plan_without_run.plan_only", plan_only)
    monkeypatch.setattr(standby, "find", lambda: contextlib.nullcontext("it"))
    run.plan(SimpleNamespace(output=tmp_path, workload="taxi"))
    assert (used, minutes) == (["it"], left)


def test_a_run_is_resumed_although_a_later_one_has_pushed_since(tmp_path, monkeypatch):
    """Its plan is made anew: its model is compared with the later one, see `test_make_plan`."""
    went_on, history = [], History(tmp_path)
    monkeypatch.setattr(run_request, "again", lambda record, *, jobs: record)
    monkeypatch.setattr(run, "run", lambda asked, *, resumed: went_on.append(resumed.run_id) or 0)
    old, new = (history.new_run("taxi", run_id=f"20261120-00000{n}-0001") for n in (1, 2))
    model = {"uri": "m", "type": "Model", "properties": {}}
    old.state = "failed"
    old.nodes = [
        NodeRecord("Trainer", "Trainer", state="complete", outputs={"model": [model]}),
        NodeRecord("Pusher", "Pusher", state="failed"),
    ]
    made = {"uri": "p", "type": "PushedModel", "properties": {"pushed": 1}}
    new.state, new.pushed = "complete", {"version": "7", "path": "serving/7"}
    new.nodes = [NodeRecord("Pusher", "Pusher", state="complete", outputs={"pushed_model": [made]})]
    for each in (old, new):
        history.save(each)
    assert run.resume(old.run_id, output=tmp_path, jobs=None) == 0
    assert went_on == [old.run_id]
