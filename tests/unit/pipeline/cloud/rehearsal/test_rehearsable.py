"""What a rehearsal must not do on this machine."""

import json

import pytest

from slipway.pipeline.cloud.rehearsal.rehearsable import check_containers, redirect_pushes
from slipway.pipeline.errors import UsageError

IMAGE = "slipway:rehearsed"
PYTHON = ["python", "-m", "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"]
STOCK = "tfx.components.pusher.executor.Executor"
REAL = {"filesystem": {"base_directory": "/srv/live", "versioning": "UNIX_TIMESTAMP"}}


def task_of(name, executor="", *, image=IMAGE, command=PYTHON, made=(), **parameters):
    """The parts of a job that one task is made of."""
    args = ["--executor_class_path", executor] if executor else []
    outputs = {key: {"artifactType": {"instanceSchema": f"title: tfx.{key}\ntype: object\n"}} for key in made}
    return {
        "task": {"componentRef": {"name": name}, "inputs": {"parameters": parameters}},
        "component": {"executorLabel": name, "outputDefinitions": {"artifacts": outputs}},
        "executor": {"container": {"image": image, "command": command, "args": args}},
    }


def job_of(**tasks):
    """A job of tasks."""
    return {
        "pipelineSpec": {
            "root": {"dag": {"tasks": {name: each["task"] for name, each in tasks.items()}}},
            "components": {name: each["component"] for name, each in tasks.items()},
            "deploymentSpec": {"executors": {name: each["executor"] for name, each in tasks.items()}},
        }
    }


def destination(job, name):
    """Where a task of the job pushes."""
    [source] = job["pipelineSpec"]["root"]["dag"]["tasks"][name]["inputs"]["parameters"].values()
    return json.loads(source["runtimeValue"]["constant"])


def pusher(source, executor=STOCK, name="Pusher"):
    """A task that pushes."""
    return task_of(name, executor, made=["PushedModel"], push_destination=source)


@pytest.mark.parametrize(
    "own",
    [
        {"image": "alpine", "command": ["sh", "-c", "echo hello > /tmp/hello"]},
        {"image": "other:1"},
        {"command": ["sh", "-c", "python do.py"]},
    ],
)
def test_container_component_is_refused_before_anything_runs(own):
    spec = job_of(Train=task_of("Train"), Say=task_of("Say", **own))["pipelineSpec"]
    with pytest.raises(UsageError, match=rf"^Say \({own.get('image', IMAGE)}\): a container component"):
        check_containers(spec, image=IMAGE)


def test_python_task_with_a_time_limit_is_no_container_component():
    spec = job_of(Train=task_of("Train", command=["timeout", "--kill-after=10", "60", *PYTHON]))[
        "pipelineSpec"
    ]
    check_containers(spec, image=IMAGE)


@pytest.mark.parametrize(
    "source",
    [{"runtimeValue": {"constant": json.dumps(REAL)}}, {"componentInputParameter": "push_destination"}],
)
def test_stock_pusher_pushes_into_the_rehearsals_folder_wherever_it_was_told_to(source):
    job = job_of(Pusher=pusher(source))
    redirect_pushes(job, folder="/out/rehearsal/serving/mine")
    assert destination(job, "Pusher")["filesystem"]["base_directory"] == "/out/rehearsal/serving/mine/Pusher"


def test_redirected_push_keeps_its_other_settings():
    job = job_of(Pusher=pusher({"runtimeValue": {"constant": json.dumps(REAL)}}))
    redirect_pushes(job, folder="/serving")
    assert destination(job, "Pusher")["filesystem"]["versioning"] == "UNIX_TIMESTAMP"


def test_two_pushers_push_apart():
    source = {"runtimeValue": {"constant": json.dumps(REAL)}}
    job = job_of(Small=pusher(source, name="Small"), Large=pusher(source, name="Large"))
    redirect_pushes(job, folder="/serving")
    assert destination(job, "Small") != destination(job, "Large")


@pytest.mark.parametrize(
    "executor", ["tfx.extensions.google_cloud_ai_platform.pusher.executor.Executor", "mine.Push_Executor", ""]
)
def test_other_component_that_pushes_is_refused(executor):
    job = job_of(Pusher=pusher({"runtimeValue": {"constant": "{}"}}, executor))
    with pytest.raises(UsageError, match="A rehearsal publishes nothing"):
        redirect_pushes(job, folder="/serving")


def test_pipeline_that_does_not_push_is_left_as_it_is():
    job = job_of(Train=task_of("Train", "mine.Train_Executor", made=["Model"]))
    before = json.dumps(job)
    redirect_pushes(job, folder="/serving")
    assert json.dumps(job) == before
