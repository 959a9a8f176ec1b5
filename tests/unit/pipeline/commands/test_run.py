"""What `run` and `plan` say before they begin, and what steps are forked from."""

import contextlib

from slipway.pipeline.commands import run
from slipway.pipeline.commands.end_listeners import END_LISTENERS
from slipway.pipeline.commands.run import moved_lines
from slipway.pipeline.engine import stepwise_run
from slipway.pipeline.engine.processes import standby
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
    assert run.begin(None, airflow="") == record.run_id
    assert run.run_node(record.run_id, "Trainer", output=tmp_path) == 3
    assert used == ["it", "it"]


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
