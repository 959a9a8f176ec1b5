"""A step that meets another process at work, which it can be tried again after."""

import fcntl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from slipway.pipeline.engine import stepwise_run
from slipway.pipeline.engine.stepwise_run import begin, finish, run_node
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.exit_codes import FAILED, INTERRUPTED
from slipway.pipeline.runs import lock
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord, write_json
from slipway.pipeline.runs.run_target import NOTHING
from slipway.pipeline.runs.shared_history import SharedHistory
from slipway.pipeline.screen.display import RunDisplay


@pytest.mark.parametrize("where", ["", "runs/{run}/steps/A"])
def test_a_step_that_another_process_keeps_waiting_may_be_tried_again(tmp_path, monkeypatch, where):
    monkeypatch.setattr(lock, "_STEP_WAIT_S", 0.1)
    monkeypatch.setattr(stepwise_run.Request, "of", lambda record: SimpleNamespace(workload=record.workload))
    history = History(tmp_path)
    record = history.new_run("taxi")
    record.in_steps, record.nodes = True, [NodeRecord(id="A")]
    history.save(record)
    folder = tmp_path / where.format(run=record.run_id)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(PipelineError, match="is in use by another run") as refused:
            run_node(record.run_id, "A", output=tmp_path, display=RunDisplay())
        assert refused.value.exit_code == FAILED
        if not where:
            with pytest.raises(PipelineError, match="is in use by another run") as refused:
                finish(record.run_id, output=tmp_path, display=RunDisplay())
            assert refused.value.exit_code == FAILED


def test_a_run_in_steps_sorts_after_the_runs_that_it_waited_for(tmp_path, monkeypatch):
    """The latest run decides which model and which data the next ones are compared with."""
    history = History(tmp_path)

    @contextmanager
    def working(*_, **__):
        waited_for.append(history.new_run("taxi").run_id)
        yield

    monkeypatch.setattr(stepwise_run, "working", working)
    monkeypatch.setattr(stepwise_run, "known_plan", Mock())
    monkeypatch.setattr(stepwise_run, "is_all_known", lambda *_: True)
    request, waited_for = (
        SimpleNamespace(output=tmp_path, workload="taxi", recorded=NOTHING, overrides={}),
        [],
    )
    for _ in range(8):
        assert begin(request, display=RunDisplay()).run_id > waited_for[-1]


@pytest.mark.parametrize("name", ["latest", "the start of its id", "its id"])
def test_a_run_whose_steps_did_not_all_run_is_not_complete_however_it_is_named(tmp_path, name):
    history = History(tmp_path)
    record = history.new_run("taxi")
    record.in_steps, record.nodes = True, [NodeRecord(id="A")]
    history.save(record)
    write_json(record.folder / "graph.json", Graph("taxi", (Node("A", "A", ()),)).to_json())
    named = {"the start of its id": record.run_id[:-2], "its id": record.run_id}.get(name, name)
    (tmp_path / "runs" / named).mkdir(exist_ok=True)  # as a step of the run so named left it

    assert finish(named, output=tmp_path, display=RunDisplay()).exit_code == INTERRUPTED


def test_a_run_is_closed_once_the_step_that_was_told_to_end_has_written_how_it_ended(tmp_path):
    history = History(tmp_path)
    record = history.new_run("taxi")
    record.in_steps, record.nodes = True, [NodeRecord(id="A", state="running")]
    history.save(record)
    write_json(record.folder / "graph.json", Graph("taxi", (Node("A", "A", ()),)).to_json())
    step = record.folder / "steps" / "A"
    step.mkdir(parents=True)
    is_held = threading.Event()

    def save_its_state():
        with (step / ".lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            is_held.set()
            time.sleep(0.3)
            own = SharedHistory(tmp_path, "A")
            ended = own.find(record.run_id)
            ended.nodes[0].state, ended.nodes[0].why = "skipped", "interrupted"
            own.save(ended)

    with ThreadPoolExecutor(1) as threads:
        ending = threads.submit(save_its_state)
        is_held.wait(60)
        assert finish(record.run_id, output=tmp_path, display=RunDisplay()).exit_code == INTERRUPTED
        ending.result()
    kept = history.find(record.run_id)
    assert (kept.state, kept.nodes[0].state) == ("interrupted", "skipped")


def test_a_run_is_not_closed_while_a_step_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(stepwise_run, "_END_WAIT_S", 0.1)
    history = History(tmp_path)
    record = history.new_run("taxi")
    record.in_steps, record.nodes = True, [NodeRecord(id="A", state="running")]
    history.save(record)
    step = record.folder / "steps" / "A"
    step.mkdir(parents=True)
    with (step / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(PipelineError, match=f"A of run {record.run_id} is in use") as refused:
            finish(record.run_id, output=tmp_path, display=RunDisplay())
    assert refused.value.exit_code == FAILED
    assert history.find(record.run_id).nodes[0].state == "running"


def test_a_step_of_a_run_whose_begin_was_killed_is_told_to_begin_again(tmp_path, monkeypatch):
    monkeypatch.setattr(stepwise_run.Request, "of", lambda record: SimpleNamespace(workload=record.workload))
    history = History(tmp_path)
    record = history.new_run("taxi")
    record.in_steps = True
    history.save(record)
    with pytest.raises(UsageError, match="has no plan: its `step begin` did not succeed") as error:
        run_node(record.run_id, "A", output=tmp_path, display=RunDisplay())
    assert " step begin " in error.value.hint


def test_a_step_of_the_latest_run_works_in_the_folder_of_that_run(tmp_path, monkeypatch):
    monkeypatch.setattr(stepwise_run.Request, "of", lambda record: SimpleNamespace(workload=record.workload))
    folders = []
    monkeypatch.setattr(stepwise_run, "_step_folder", lambda folder, _name: folders.append(folder) or folder)
    monkeypatch.setattr(stepwise_run, "end_leftovers", Mock(side_effect=KeyboardInterrupt))
    history = History(tmp_path)
    record = history.new_run("taxi")
    record.in_steps, record.nodes = True, [NodeRecord(id="A")]
    history.save(record)

    assert run_node("latest", "A", output=tmp_path, display=RunDisplay())[1] == INTERRUPTED
    assert folders == [record.folder]


@pytest.mark.parametrize("nodes", [[], [NodeRecord(id="A")]], ids=["no plan", "no graph"])
def test_a_run_whose_begin_was_killed_is_not_complete(tmp_path, nodes):
    history = History(tmp_path)
    record = history.new_run("taxi")
    record.in_steps, record.nodes = True, nodes
    history.save(record)
    assert finish(record.run_id, output=tmp_path, display=RunDisplay()).exit_code == INTERRUPTED
