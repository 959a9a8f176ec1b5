import errno
import os
import re
import tempfile
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from slipway.pipeline.config import WorkloadChoice, read_assignments
from slipway.pipeline.engine import local_run
from slipway.pipeline.engine import stepwise_run as steps
from slipway.pipeline.engine.concurrent_runs import Beside
from slipway.pipeline.engine.journal import Journal
from slipway.pipeline.errors import ConfigError, InUseError, PipelineError, UsageError
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.plan.decide import Decision
from slipway.pipeline.plan.make_plan import Plan
from slipway.pipeline.plan.run_request import workload_request
from slipway.pipeline.runs.comparison import settings_of
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import Failure, NodeRecord


@pytest.mark.parametrize("begin", [local_run.execute, partial(steps.begin, airflow="")])
def test_a_place_that_no_model_can_be_pushed_to_is_refused_before_anything_runs(
    project, tmp_path, monkeypatch, begin
):
    (tmp_path / "file").touch()
    monkeypatch.delattr(local_run, "ForkServerClient")
    monkeypatch.delattr(steps, "ForkServerClient")
    workload, output = project / "workloads/taxi/workload.yaml", tmp_path / "output"
    sets = [f"push.destination={tmp_path / 'file'}"]
    request = workload_request(WorkloadChoice(workload, read_assignments(sets)), output=output, beam_args=())

    with pytest.raises(ConfigError, match=r"push\.destination = .*file is not a directory"):
        begin(request, display=Mock())

    assert list(History(output).runs()) == []


CHECK, OTHER = Node("Check", "ServingCheck", ()), Node("Other", "Other", ())


def planned(action):
    decisions = {"Check": Decision("Check", action, ""), "Other": Decision("Other", "run", "")}
    return Plan(Graph("toy", (CHECK, OTHER)), {}, decisions, baseline="", reference="")


@pytest.mark.parametrize(
    ("known", "sets", "options", "has_run", "expected"),
    [
        ("run", [], {}, True, True),
        ("reuse", [], {}, False, False),
        ("skip", [], {}, False, False),
        (None, [], {}, False, True),
        (None, [], {}, True, False),
        (None, [], {"end": "Trainer"}, False, False),
        (None, ["evaluate.serving=null"], {}, False, False),
    ],
)
def test_serving_check_is_foreseen_only_where_it_is_certain(
    project, tmp_path, known, sets, options, has_run, expected
):
    choice = WorkloadChoice(project / "workloads/taxi/workload.yaml", read_assignments(sets))
    request = workload_request(choice, output=tmp_path, beam_args=(), **options)
    history = History(tmp_path)
    record = history.new_run("taxi")
    record.nodes = [NodeRecord("Check")] * has_run
    history.save(record)
    plan = None if known is None else planned(known)
    assert local_run._will_check_serving(request, history, plan) is expected


def test_machine_that_refuses_ends_the_run_in_words_with_the_way_on(project, tmp_path, monkeypatch):
    def full(prefix):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"/full/{prefix}")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    monkeypatch.setattr(local_run, "is_all_known", lambda *_: False)
    workload, output = project / "workloads/taxi/workload.yaml", tmp_path / "output"
    request = workload_request(WorkloadChoice(workload), output=output, beam_args=())

    with pytest.raises(PipelineError) as told:
        local_run.execute(request, display=Mock())

    [run] = History(output).runs()
    assert (run.state, run.exit_code) == ("failed", 1)
    assert re.fullmatch(r"/full/slipway-run-[0-9a-f]+-: No space left on device\.", told.value.message)
    assert f"resume {run.run_id}" in told.value.hint


@pytest.mark.parametrize("step", ["new_run", "save"])
def test_a_disk_that_is_full_before_a_run_is_recorded_keeps_no_notification_back(
    project, tmp_path, monkeypatch, step
):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run.json")
    monkeypatch.setattr(History, step, Mock(side_effect=full))
    request = workload_request(
        WorkloadChoice(project / "workloads/taxi/workload.yaml"), output=tmp_path / "output", beam_args=()
    )
    told = Mock()
    with pytest.raises(OSError, match="No space left on device"):
        local_run.execute(request, display=Mock(), listeners=[told])

    [[record]] = [call.args for call in told.mock_calls]
    assert (record.workload, record.state, record.exit_code) == ("taxi", "failed", 1)


def test_an_interrupt_ends_a_run_side_by_side_even_if_all_is_cached(project, tmp_path, monkeypatch):
    monkeypatch.setattr(local_run, "is_all_known", lambda *_: True)
    workload, output = project / "workloads/taxi/workload.yaml", tmp_path / "output"
    request = workload_request(WorkloadChoice(workload), output=output, beam_args=())
    beside = Beside()
    assert local_run.execute(request, display=Mock(), beside=beside).state == "complete"
    beside.interrupt()
    assert local_run.execute(request, display=Mock(), beside=beside).state == "interrupted"


def test_a_node_that_another_ends_while_a_run_is_planned_is_not_run_again(tmp_path, monkeypatch):
    beside, graph, plans = Beside(), Graph("toy", (OTHER,)), []
    assert beside.claim("other", {("Other", "key")}, releases=0, tick=Mock())

    def make_plan(*_, **__):
        decision = Decision("Other", "reuse" if plans else "run", "")
        plans.append(Plan(graph, {"Other": Mock(key="key")}, {"Other": decision}, baseline="", reference=""))
        beside.end("other")
        return plans[-1]

    monkeypatch.setattr(local_run, "make_plan", make_plan)
    monkeypatch.setattr(local_run, "graph_key", lambda _: "")
    monkeypatch.setattr(local_run, "keep_graph", lambda *_, **__: graph)
    monkeypatch.setattr(local_run, "_begin_nodes", Mock())
    history, server = History(tmp_path), Mock()
    server.reuse.return_value = {}

    plan = local_run.prepare(
        Mock(), Journal(history.new_run("toy"), history, 0.0), Mock(), server, beside=beside
    )

    assert plan.decisions["Other"].action == "reuse"
    assert len(plans) == 2


def test_a_pipeline_s_own_store_that_is_no_file_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(local_run, "keep_graph", lambda *_, **__: Graph("toy", (OTHER,), store=str(tmp_path)))
    history, server = History(tmp_path / "output"), Mock()
    request = Mock(is_workload=False, store_file=Path)
    with pytest.raises(UsageError, match="is a folder, a pipe or a device"):
        local_run.prepare(request, Journal(history.new_run("toy"), history, 0.0), Mock(), server)
    assert not server.settle.called


def test_a_node_that_a_resumed_run_runs_again_keeps_nothing_of_its_earlier_attempt(tmp_path):
    history = History(tmp_path)
    record = history.new_run("toy")
    made = {"model": [{"uri": "/old", "type": "Model", "properties": {}}]}
    error = Failure(message="it was ended")
    record.nodes = [
        NodeRecord(
            "Other", state="failed", attempts=4, preemptions=3, execution_id=7, outputs=made, error=error
        )
    ]
    decision = Decision("Other", "run", "its code changed")
    plan = Plan(
        Graph("toy", (OTHER,)), {"Other": Fingerprint({"node:id": "Other"})}, {"Other": decision}, "", ""
    )

    local_run._begin_nodes(Journal(record, history, 0.0), plan, Mock())

    [entry] = record.nodes
    # The attempts that were ended from outside would otherwise count as further retries.
    assert (entry.state, entry.attempts, entry.preemptions, entry.error) == ("waiting", 0, 0, None)
    assert (entry.execution_id, entry.outputs) == (None, {})


@pytest.mark.parametrize("is_own", [False, True], ids=["another run", "published before it was ended"])
def test_a_node_that_failed_before_a_run_was_resumed_has_not_failed_if_there_is_a_result_now(
    tmp_path, is_own
):
    """As a gate that stopped, it would take back the results behind it; the page would show its error."""
    history = History(tmp_path)
    record = history.new_run("toy")
    error = Failure(message="it stopped the run")
    record.nodes = [NodeRecord("Other", state="failed", attempts=4, error=error, is_stop=True)]
    source = {"run_id": record.run_id if is_own else "another", "execution_id": 7, "outputs": {}}
    decision = Decision("Other", "reuse", "cached from another", source)
    plan = Plan(
        Graph("toy", (OTHER,)), {"Other": Fingerprint({"node:id": "Other"})}, {"Other": decision}, "", ""
    )

    local_run._begin_nodes(Journal(record, history, 0.0), plan, Mock())

    [entry] = record.nodes
    assert (entry.state, entry.execution_id) == ("complete" if is_own else "cached", 7)
    assert (entry.error, entry.is_stop, entry.attempts) == (None, False, 0)


@pytest.mark.parametrize(("action", "metrics"), [("run", {}), ("reuse", {"auc": 0.9})])
def test_a_resumed_run_tells_from_its_plan_on_what_is_kept_of_its_earlier_attempt(tmp_path, action, metrics):
    history = History(tmp_path)
    record = history.new_run("toy")
    record.resumed, record.metrics = 1, {"auc": 0.9}
    properties = {"metrics": '{"auc": 0.9}'}
    made = {"evaluation": [{"uri": "/e", "type": "ModelEvaluation", "properties": properties}]}
    source = {"run_id": record.run_id, "execution_id": 7, "outputs": made}
    decision = Decision("Other", action, "", source if action == "reuse" else None)
    record.nodes = [NodeRecord("Other", state="complete", outputs=made)]
    plan = Plan(
        Graph("toy", (OTHER,)), {"Other": Fingerprint({"node:id": "Other"})}, {"Other": decision}, "", ""
    )

    local_run._begin_nodes(Journal(record, history, 0.0), plan, Mock())

    assert History(tmp_path).find(record.run_id).metrics == metrics


def test_a_resumed_run_is_recorded_with_the_settings_that_it_is_resumed_with(project, tmp_path, monkeypatch):
    monkeypatch.setattr(local_run, "is_all_known", lambda *_: True)
    workload, output = project / "workloads/taxi/workload.yaml", tmp_path / "output"

    def request(batch_size):
        choice = WorkloadChoice(workload, read_assignments([f"train.batch_size={batch_size}"]))
        return workload_request(choice, output=output, beam_args=())

    run = local_run.execute(request(512), display=Mock())
    local_run.execute(request(128), display=Mock(), resumed=run)

    assert settings_of(History(output).find(run.run_id))["train.batch_size"] == 128


def test_a_run_that_another_process_has_continued_since_it_was_read_is_left_alone(
    project, tmp_path, monkeypatch
):
    monkeypatch.setattr(local_run, "is_all_known", lambda *_: True)
    workload, output = project / "workloads/taxi/workload.yaml", tmp_path / "output"
    request = workload_request(WorkloadChoice(workload), output=output, beam_args=())
    run_id = local_run.execute(request, display=Mock()).run_id
    [ours, theirs] = [History(output).find(run_id) for _ in range(2)]
    local_run.execute(request, display=Mock(), resumed=theirs)

    with pytest.raises(InUseError, match=f"{run_id} was continued by another process .* complete now"):
        local_run.execute(request, display=Mock(), resumed=ours)

    assert History(output).find(run_id).resumed == 1
