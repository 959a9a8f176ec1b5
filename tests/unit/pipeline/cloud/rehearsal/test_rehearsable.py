"""What a rehearsal must not do on this machine."""

import json

import pytest

from slipway.pipeline.cloud.complete_job import container_tasks
from slipway.pipeline.cloud.rehearsal.rehearsable import (
    check_containers,
    check_jobs,
    check_waits,
    redirect_pushes,
    run_every_task,
    runtime_values,
)
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


def test_task_that_starts_a_job_elsewhere_is_refused_before_anything_runs():
    paid = "tfx.extensions.google_cloud_ai_platform.trainer.executor.GenericExecutor"
    check_jobs(
        job_of(Train=task_of("Train", "tfx.components.trainer.executor.GenericExecutor"))["pipelineSpec"]
    )
    with pytest.raises(UsageError, match=r"^Train \(tfx\.extensions.*: would start a job on Google Cloud"):
        check_jobs(job_of(Train=task_of("Train", paid))["pipelineSpec"])


@pytest.mark.parametrize("runner", ["DataflowRunner", "dataflow", "apache_beam.runners.TestDataflowRunner"])
def test_pipeline_whose_beam_runs_on_dataflow_is_refused_unless_another_runner_comes_behind_it(runner):
    spec = job_of(Gen=task_of("Gen", "mine.Gen_Executor"))["pipelineSpec"]
    [(_, container)] = container_tasks(spec)
    container["args"] = [*container["args"], "--runner", runner]
    with pytest.raises(UsageError, match=r"^Gen: would start a Dataflow job") as refused:
        check_jobs(spec)
    assert refused.value.hint.startswith("--beam=--runner=DirectRunner")
    container["args"].append("--runner=DirectRunner")
    check_jobs(spec)


def test_no_task_of_a_users_pipeline_is_cached_for_its_code_may_have_changed():
    spec = job_of(Train=task_of("Train"))["pipelineSpec"]
    spec["root"]["dag"]["tasks"]["Train"]["cachingOptions"] = {"enableCache": True}
    run_every_task(spec)
    assert spec["root"]["dag"]["tasks"]["Train"]["cachingOptions"] == {"enableCache": False}


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


@pytest.fixture
def values():
    """The values that a job with a parameter of each type is given."""
    types = {"count": "NUMBER_INTEGER", "rate": "NUMBER_DOUBLE", "word": "STRING"}
    declared = {name: {"parameterType": kind} for name, kind in types.items()}
    spec = {**job_of()["pipelineSpec"]}
    spec["root"]["inputDefinitions"] = {"parameters": declared}
    return lambda **given: runtime_values(spec, name="mine:make", given=given, defaults={"word": "a b"})


def test_runtime_parameters_have_the_types_that_the_job_declares(values):
    made = values(count="7", rate="2", word="3")
    assert made == {"count": 7, "rate": 2.0, "word": "3"}
    assert [type(value) for value in made.values()] == [int, float, str]


def test_runtime_parameter_without_a_value_is_reported_before_anything_runs(values):
    with pytest.raises(UsageError, match=r"no value for the runtime parameters rate, word\.") as refused:
        values(count="7")
    assert refused.value.hint.endswith(": --set rate=VALUE --set 'word=a b'")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"cuont": "7"}, "--set cuont: mine:make has no such parameter. Closest: 'count'."),
        ({"count": "x"}, "--set count=x: must be a whole number."),
        ({"rate": "x"}, "--set rate=x: must be a number."),
    ],
)
def test_parameter_of_another_name_or_type_is_refused(values, given, told):
    with pytest.raises(UsageError) as refused:
        values(**given)
    assert refused.value.message == told


def test_pipeline_without_parameters_takes_none():
    assert runtime_values(job_of()["pipelineSpec"], name="mine:make", given={}, defaults={}) == {}
    with pytest.raises(UsageError, match="It has none"):
        runtime_values(job_of()["pipelineSpec"], name="mine:make", given={"a": "b"}, defaults={})


def test_task_that_waits_for_one_that_tfx_names_otherwise_is_named():
    names = ("Say", "base-model-resolver", "base-model-blessing-resolver")
    job = job_of(**{name: task_of(name) for name in names})
    job["pipelineSpec"]["root"]["dag"]["tasks"]["Say"]["dependentTasks"] = ["base-model-resolver"]
    check_waits(job["pipelineSpec"])
    job["pipelineSpec"]["root"]["dag"]["tasks"]["Say"]["dependentTasks"] = ["base"]
    with pytest.raises(UsageError, match=r"^Say waits for base, and TFX compiles no task of that name"):
        check_waits(job["pipelineSpec"])
