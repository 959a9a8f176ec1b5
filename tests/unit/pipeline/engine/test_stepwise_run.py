"""A step that meets another process at work, which it can be tried again after."""

import fcntl
from types import SimpleNamespace

import pytest

from slipway.pipeline.engine import stepwise_run
from slipway.pipeline.engine.stepwise_run import finish, run_node
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.exit_codes import FAILED
from slipway.pipeline.runs import lock
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord
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
