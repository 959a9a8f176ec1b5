"""A run at a service, told in the engine's words."""

import json
from datetime import UTC, datetime

import pytest

from slipway.pipeline.cloud.complete_job import FIND, component_of
from slipway.pipeline.cloud.container.kubeflow_input import ABSENT
from slipway.pipeline.cloud.follow import ending, finish, new_record, read_failure, update
from slipway.pipeline.cloud.services.service import JobState, TaskState

VERTEX = "The replica workerpool0-0 exited with a non-zero status of {}. Termination reason: Error. {}"


@pytest.fixture
def record(project):
    job = json.loads((project / "tests/data/cloud/taxi.json").read_text())
    return new_record(job, run_id="taxi-1")


def ended(record, state):
    update(record, state)
    code = finish(record, state, wall_s=90.0)
    return code, list(ending(record, state, link="https://link", bless="BLESS"))


def test_tasks_wait_in_the_order_in_which_they_need_each_other(record):
    order = [node.id for node in record.nodes]
    assert order[0] == "Baseline-model-blessing-resolver"
    assert (
        order.index("Ingest")
        < order.index("StatisticsGen")
        < order.index("DataGate")
        < order.index("Transform")
    )
    assert order[-1] == "Pusher"
    assert {node.state for node in record.nodes} == {"waiting"}


def test_blessing_that_a_container_looked_up_is_not_the_run_s_own(project):
    job = json.loads((project / "tests/data/cloud/taxi.json").read_text())
    name = "Baseline-model-blessing-resolver"
    container = {"container": {"image": "i", "command": ["python", "-m", FIND], "args": []}}
    label = component_of(job["pipelineSpec"], name)["executorLabel"]
    job["pipelineSpec"]["deploymentSpec"]["executors"][label] = container
    record = new_record(job, run_id="taxi-1")
    earlier = {"uri": "gs://b/b", "type": "ModelBlessing", "properties": {"blessed": 0.0}}
    absent = {"uri": "gs://b/c", "type": "ModelBlessing", "properties": {ABSENT: 1.0}}
    found = TaskState(name, "complete", outputs={"model_blessing": [earlier, absent]})
    update(record, JobState("running", tasks=(found,)))
    assert len(record.node(name).outputs["model_blessing"]) == 1
    assert list(record.outputs_of("ModelBlessing")) == []


def test_task_that_consists_of_tasks_as_in_pipelines_of_others_is_followed_too(project):
    job = json.loads((project / "tests/data/cloud/taxi.json").read_text())
    component = component_of(job["pipelineSpec"], "Pusher")
    del component["executorLabel"]
    component["dag"] = {"tasks": {}}
    assert new_record(job, run_id="taxi-1").node("Pusher").type == ""


def test_change_is_reported_once_and_unknown_tasks_are_passed_over(record):
    running = JobState("running", tasks=(TaskState("Ingest", "running"), TaskState("taxi-1", "running")))
    assert [node.id for node in update(record, running)] == ["Ingest"]
    assert update(record, running) == []
    done = JobState("running", tasks=(TaskState("Ingest", "complete", wall_s=12.0),))
    assert [(node.state, node.wall_s) for node in update(record, done)] == [("complete", 12.0)]


def test_pushed_run_is_done(record):
    pushed = {
        "uri": "gs://b/p",
        "type": "PushedModel",
        "properties": {"pushed": 1.0, "pushed_destination": "gs://b/s/7"},
    }
    blessed = {"uri": "gs://b/b", "type": "ModelBlessing", "properties": {"blessed": 1.0}}
    tasks = (
        TaskState("ModelGate", "complete", outputs={"blessing": [blessed]}),
        TaskState("Pusher", "complete", outputs={"pushed_model": [pushed]}),
    )
    code, lines = ended(record, JobState("complete", tasks=tasks))
    assert code == 0
    assert lines == [
        "Done: taxi, 90 s",
        "Pushed: version 7 -> gs://b/s/7",
        "Blessed: yes.",
        "90 s: 2 ran, 13 skipped; longest ModelGate 0.0 s",
        "hint: https://link   # logs and artifacts",
    ]


def test_task_whose_end_the_service_does_not_tell_is_not_said_to_be_skipped(record):
    done = tuple(TaskState(node.id, "complete") for node in record.nodes if node.id != "Pusher")
    code, lines = ended(record, JobState("complete", tasks=done, is_outdated=True))
    assert code == 0
    assert lines[1:3] == [
        "not told by the service: how Pusher ended",
        "90 s: 14 ran; longest Baseline-model-blessing-resolver 0.0 s",
    ]


def test_model_that_is_not_blessed_is_a_gate_s_stop_though_every_task_is_done(record):
    blessing = {"uri": "gs://b/b", "type": "ModelBlessing", "properties": {"blessed": 0.0}}
    tasks = (TaskState("ModelGate", "complete", outputs={"blessing": [blessing]}),)
    code, lines = ended(record, JobState("complete", tasks=tasks))
    assert code == 3
    assert lines == [
        "Stopped: the model is not blessed, 90 s",
        "Not pushed: ModelGate did not bless the model.",
        "hint: BLESS   # blesses it, on the record",
        "90 s: 1 ran, 14 skipped; longest ModelGate 0.0 s",
        "hint: https://link   # logs and artifacts",
    ]


def test_gate_that_stopped_a_run_is_distinguished_from_a_fault_by_its_exit_code(record):
    said = VERTEX.format(3, "log line\nerror: 3 of 15002 rows are wrong\n- fare: below 0\nhint: look at them")
    code, lines = ended(record, JobState("failed", tasks=(TaskState("DataGate", "failed", said),)))
    assert code == 3
    assert lines[:4] == [
        "Stopped: DataGate, 90 s",
        "  DataGate: 3 of 15002 rows are wrong",
        "  DataGate: - fare: below 0",
        "    hint: look at them",
    ]


@pytest.mark.parametrize(
    ("began", "ended", "took_s"), [(0, 90, 90.0), (90, 0, None), (0, None, None), (None, 90, None)]
)
def test_time_of_a_run_is_known_if_the_service_tells_begin_and_end(began, ended, took_s):
    at = [None if each is None else datetime.fromtimestamp(each, UTC) for each in (began, ended)]
    assert JobState("complete", began=at[0], ended=at[1]).took_s == took_s


def test_task_that_failed_is_a_failure_also_beside_a_gate(record):
    tasks = (
        TaskState("DataGate", "failed", VERTEX.format(3, "error: no")),
        TaskState("Trainer", "failed", VERTEX.format(1, "error: no memory")),
    )
    code, lines = ended(record, JobState("failed", "2 tasks failed", tasks))
    assert code == 1
    assert lines[:3] == ["Failed: DataGate, Trainer, 90 s", "  DataGate: no", "  Trainer: no memory"]


@pytest.mark.parametrize(("phase", "word"), [("cancelled", "Cancelled"), ("failed", "Failed")])
def test_run_that_ended_before_its_tasks_failed_is_a_failure_with_the_service_s_cause(record, phase, word):
    code, lines = ended(record, JobState(phase, "quota of CPUs exceeded"))
    assert code == 1
    assert lines[0] == f"{word}: quota of CPUs exceeded, 90 s"
    assert {node.state for node in record.nodes} == {"skipped"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (VERTEX.format(1, "error: no\nhint: do\n"), ("no", "do", 1)),
        (
            VERTEX.format(1, "error: 2 rows\n  a parse error: of 3\nhint: do\n"),
            ("2 rows\n  a parse error: of 3", "do", 1),
        ),
        ("a log's\nan sql error: x\nerror: no: an sql error: y\n", ("no: an sql error: y", "", None)),
        ("main: Error (exit code 3)", ("main: Error (exit code 3)", "", 3)),
        ("failed to execute component: exit status 3", ("failed to execute component: exit status 3", "", 3)),
        ("ValueError: bad\n", ("ValueError: bad", "", None)),
        ("RuntimeError: bad", ("RuntimeError: bad", "", None)),
    ],
)
def test_cause_of_a_failure_is_read_from_what_services_quote(text, expected):
    assert read_failure(text) == expected
