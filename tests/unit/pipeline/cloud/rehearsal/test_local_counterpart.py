"""Which local run a rehearsal is compared with, and what is said where there is none."""

import pytest

from slipway.pipeline.cloud.rehearsal import local_counterpart as compare
from slipway.pipeline.cloud.rehearsal.local_counterpart import Compared, compare_with_local
from slipway.pipeline.cloud.rehearsal.output_comparison import Comparison
from slipway.pipeline.config import read_parameters
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.plan.decide import Decision
from slipway.pipeline.plan.make_plan import Plan
from slipway.pipeline.plan.run_request import pipeline_request
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord, RunRecord


@pytest.fixture
def request_for(tmp_path):
    """A request to run a pipeline of the user's own."""
    return lambda *sets, beam=(): pipeline_request(
        "mine.penguin:create", parameters=read_parameters(sets), output=tmp_path, beam_args=beam
    )


def test_pipeline_of_the_users_own_is_found_under_the_name_it_has_itself(request_for, tmp_path, monkeypatch):
    request = request_for()
    history = History(tmp_path)
    record = history.new_run(request.workload, request.recorded)
    record.workload = "penguin"  # as its own function calls it
    history.save(record)
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        (folder / "Split-train").mkdir(parents=True)
    cache = {"cache": [{"uri": str(here), "type": "TransformCache", "properties": {}}]}
    made = {"examples": [{"uri": str(here), "type": "Examples", "properties": {}}], **cache}
    plan = Plan({}, {}, {"Gen": Decision("Gen", "reuse", "", {"outputs": made})}, "", "")
    monkeypatch.setattr(compare, "plan_kept", lambda *_: plan)
    rehearsed = RunRecord("1", request.workload)
    outputs = {"examples": [{"uri": str(there), "type": "Examples", "properties": {}}], **cache}
    rehearsed.nodes = [NodeRecord("Gen", state="complete", outputs=outputs)]
    found = compare_with_local(request, rehearsed)
    assert list(found.lines()) == [
        "Equal to the local run in content: Gen.examples",
        "Not compared, because there is no rule for their types: Gen.cache (TransformCache)",
    ]


def test_rehearsal_of_what_cannot_be_planned_here_has_still_succeeded(request_for, tmp_path, monkeypatch):
    request = request_for()
    history = History(tmp_path)
    history.save(history.new_run(request.workload, request.recorded))

    def refuse(*_):
        raise PipelineError("ValueError: unsupported parameter")

    monkeypatch.setattr(compare, "plan_kept", refuse)
    found = compare_with_local(request, RunRecord("1", request.workload))
    assert not found.differs
    assert list(found.lines()) == [
        "Not compared with a local run, which would fail: ValueError: unsupported parameter"
    ]


def test_hint_is_a_command_that_runs_the_same_pipeline(request_for, tmp_path):
    request = request_for("steps=3", beam=["--direct_num_workers=1"])
    found = compare_with_local(request, RunRecord("1", request.workload))
    assert found.hint == (
        "python local_runner.py run --pipeline mine.penguin:create --set steps=3 "
        f"--beam --direct_num_workers=1 --output {tmp_path}"
    )


def test_what_cannot_be_read_is_reported_and_is_no_difference():
    found = Compared([Comparison("Gen", "schema", unread="FileNotFoundError: schema.pbtxt")])
    assert not found.differs
    assert list(found.lines()) == [
        "Not compared: Gen.schema; not kept as TFX does (FileNotFoundError: schema.pbtxt)"
    ]
