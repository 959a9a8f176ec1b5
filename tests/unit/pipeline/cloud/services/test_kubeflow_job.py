"""A compiled job as Kubeflow Pipelines can carry it out."""

import copy
import json
from datetime import UTC, datetime

import pytest
import yaml
from taxi_workload import taxi_workload

from slipway.pipeline.cloud.complete_job import component_of, container_tasks, executor_of, tasks_of
from slipway.pipeline.cloud.services.kubeflow_job import (
    fill_scheduled_time,
    kubeflow_concurrency,
    kubeflow_cron,
    kubeflow_job,
    kubeflow_package,
)
from slipway.pipeline.config.cloud_services import ScheduleConfig
from slipway.pipeline.errors import ConfigError

BY_DAY = "data.source=gs://b/{YYYY}/{MM}-{DD}.csv"


@pytest.fixture
def job(project):
    return json.loads((project / "tests/data/cloud/taxi.json").read_text())


def with_pattern(job, pattern):
    parameters = tasks_of(job["pipelineSpec"])["Ingest"]["inputs"]["parameters"]
    text = json.dumps({"splits": [{"name": "all", "pattern": pattern}]})
    parameters["input_config"] = {"runtimeValue": {"constant": text}}
    parameters["range_config"] = {"runtimeValue": {"constant": "{}"}}
    component_of(job["pipelineSpec"], "Ingest")["inputDefinitions"]["parameters"]["range_config"] = {}
    return job


def test_resolvers_are_gone_with_what_took_their_outputs(job):
    before = copy.deepcopy(job)
    spec = kubeflow_job(job, taxi_workload("cloud.kubeflow.without_baseline=true"))["pipelineSpec"]
    assert job == before
    finders = ("Baseline", "Reference")
    gone = {f"{name}-{found}" for name in finders for found in ("model-blessing-resolver", "model-resolver")}
    assert set(tasks_of(job["pipelineSpec"])) - set(tasks_of(spec)) == gone
    text = json.dumps(spec)
    assert not any(f'"{name}"' in text for name in gone)
    assert "blessing" not in component_of(spec, "DataGate")["inputDefinitions"]["artifacts"]
    assert "baseline_model" not in tasks_of(spec)["Evaluator"]["inputs"]["artifacts"]
    assert "lifecycle" not in executor_of(spec, "Ingest")["container"]


def test_input_of_the_pipelines_own_has_no_producer(job):
    inputs = tasks_of(job["pipelineSpec"])["Evaluator"]["inputs"]["artifacts"]
    inputs["given"] = {"componentInputArtifact": "given"}
    spec = kubeflow_job(job, taxi_workload())["pipelineSpec"]
    args = executor_of(spec, "Evaluator")["container"]["args"]
    [producers] = [word for word in args if word.startswith("--producers=")]
    assert "model=Trainer" in producers
    assert "given" not in producers


def test_a_task_of_ours_answers_for_each_resolver_and_the_others_keep_records(job):
    spec = kubeflow_job(job, taxi_workload())["pipelineSpec"]
    resolvers = [name for name in tasks_of(spec) if "resolver" in executor_of(job["pipelineSpec"], name)]
    copied = {}
    for name in resolvers:
        container = executor_of(spec, name)["container"]
        given, queries, records, fetch = container["args"]
        copied[name] = fetch.removeprefix("--fetch=")
        assert container["image"] == "registry/slipway:1.0"
        assert container["command"][-1] == "slipway.pipeline.cloud.container.find_artifacts"
        assert (given, records) == ("--given={{$}}", "--records=gs://bucket/pipelines/records/taxi")
        asked = executor_of(job["pipelineSpec"], name)["resolver"]["outputArtifactQueries"]
        assert "{{" not in queries, "which the driver, the launcher and Argo would fill in"
        assert json.loads(queries.removeprefix("--queries=")) == {k: q["filter"] for k, q in asked.items()}
        assert tasks_of(spec)[name]["cachingOptions"] == {"enableCache": False}
    assert copied == {
        "Baseline-model-blessing-resolver": "",  # only another look-up takes it, and only its metadata
        "Baseline-model-resolver": "model",
        "Reference-model-blessing-resolver": "model_blessing",
        "Reference-model-resolver": "",
    }
    gate = executor_of(spec, "ModelGate")["container"]
    assert gate["command"][-1] == "slipway.pipeline.cloud.container.kubeflow_task"
    assert gate["args"][-2:] == [records, "--keep=tfx.Model,tfx.ModelBlessing"]
    evaluator = executor_of(spec, "Evaluator")["container"]
    [producers] = [word for word in evaluator["args"] if word.startswith("--producers=")]
    makers = dict(pair.split("=") for pair in producers.removeprefix("--producers=").split(","))
    assert (makers["model"], makers["baseline_model"]) == ("Trainer", "Baseline-model-resolver")
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2 as types

    parsed = json_format.ParseDict(spec, types.PipelineSpec())
    assert "baseline_model" in parsed.root.dag.tasks["Evaluator"].inputs.artifacts


def test_look_up_has_resources_and_limits_its_own_or_its_node_s(job):
    sets = (
        "cloud.tasks={Baseline: {cpu: 1}, Baseline-model-resolver: {cpu: 2}}",
        "cloud.resources={memory_gb: 8, accelerator: nvidia.com/gpu}",
        "nodes={Reference: {retries: 2, timeout_s: 60}}",
    )
    spec = kubeflow_job(job, taxi_workload(*sets))["pipelineSpec"]

    def resources(name):
        return executor_of(spec, name)["container"]["resources"]

    assert resources("Baseline-model-blessing-resolver")["resourceCpuLimit"] == "1"
    assert resources("Baseline-model-resolver")["resourceCpuLimit"] == "2"
    assert resources("Reference-model-resolver") == {"memoryLimit": 8, "resourceMemoryLimit": "8G"}
    assert "retryPolicy" not in tasks_of(spec)["Baseline-model-resolver"]
    assert tasks_of(spec)["Reference-model-resolver"]["retryPolicy"]["maxRetryCount"] == 2
    command = executor_of(spec, "Reference-model-resolver")["container"]["command"]
    assert command[:3] == ["timeout", "--kill-after=10", "60"]


def test_scheduled_day_reaches_ingest_through_the_task_that_an_exit_handler_waits_for(job):
    spec = with_pattern(job, "{YYYY}/{MM}-{DD}.csv")["pipelineSpec"]
    spec["components"]["tfx-dag"] = {"dag": spec["root"]["dag"]}
    spec["root"]["dag"] = {"tasks": {"tfx-dag": {"componentRef": {"name": "tfx-dag"}}}}
    asked = taxi_workload(BY_DAY, "cloud.schedule={lag_days: 2}")
    made = kubeflow_job(job, asked, when=asked.cloud.schedule)
    label = "scheduledworkflows.kubeflow.org/workflowEpoch"
    assert made["runtimeConfig"]["parameterValues"] == {"scheduled_at": f"{{{{workflow.labels.{label}}}}}"}
    spec = made["pipelineSpec"]
    asked_of = {"componentInputParameter": "scheduled_at"}
    given = tasks_of(spec)["Ingest"]["inputs"]["parameters"]
    assert (given["scheduled_at"], given["lag_days"]) == (asked_of, {"runtimeValue": {"constant": 2}})
    assert "{YYYY}/{MM}-{DD}.csv" in given["input_config"]["runtimeValue"]["constant"]
    declared = component_of(spec, "Ingest")["inputDefinitions"]["parameters"]
    assert {declared[key]["parameterType"] for key in ("scheduled_at", "lag_days")} == {
        "STRING",
        "NUMBER_INTEGER",
    }
    assert spec["components"]["tfx-dag"]["inputDefinitions"]["parameters"].keys() == {"scheduled_at"}
    wrapper = spec["root"]["dag"]["tasks"]["tfx-dag"]
    assert wrapper["inputs"]["parameters"] == {"scheduled_at": asked_of}


def test_parameter_of_ones_own_is_not_taken_for_the_scheduled_time(job):
    job = with_pattern(job, "{YYYY}/{MM}-{DD}.csv")
    job["pipelineSpec"]["root"]["inputDefinitions"] = {"parameters": {"scheduled_at": {}}}
    asked = taxi_workload(BY_DAY, "cloud.schedule={lag_days: 2}", "cloud.parameters.scheduled_at=noon")
    with pytest.raises(ConfigError, match="a runtime parameter scheduled_at of its own") as refused:
        kubeflow_job(job, asked, when=asked.cloud.schedule)
    assert refused.value.hint == "rename the parameter"


def test_scheduled_time_reaches_each_of_several_sources(job):
    spec = with_pattern(job, "{YYYY}/{MM}-{DD}.csv")["pipelineSpec"]
    task, component = (
        copy.deepcopy(each) for each in (tasks_of(spec)["Ingest"], component_of(spec, "Ingest"))
    )
    executors = spec["deploymentSpec"]["executors"]
    executors["second"] = copy.deepcopy(executors[component["executorLabel"]])
    spec["components"]["second"] = {**component, "executorLabel": "second"}
    tasks_of(spec)["Second"] = {**task, "componentRef": {"name": "second"}, "taskInfo": {"name": "Second"}}
    asked = taxi_workload(BY_DAY, "cloud.schedule={lag_days: 2}")
    made = kubeflow_job(job, asked, when=asked.cloud.schedule)["pipelineSpec"]
    for name in ("Ingest", "Second"):
        given = tasks_of(made)[name]["inputs"]["parameters"]["scheduled_at"]
        assert given == {"componentInputParameter": "scheduled_at"}


def test_run_that_starts_now_gets_the_time_that_argo_would_fill_in(job):
    asked = taxi_workload("data.source=gs://b/{SPAN}.csv", "cloud.schedule.lag_days=0")
    made = kubeflow_job(with_pattern(job, "{SPAN}.csv"), asked, when=asked.cloud.schedule)
    values = {**made["runtimeConfig"]["parameterValues"], "own": "x", "rate": 0.1}
    filled = fill_scheduled_time(values, datetime(2027, 1, 31, 3, tzinfo=UTC))
    assert filled == {"scheduled_at": "1801364400", "own": "x", "rate": 0.1}


def test_package_is_yaml_of_the_pipeline_with_the_values_as_defaults(job):
    asked = taxi_workload(BY_DAY, "cloud.schedule={lag_days: 0}")
    made = kubeflow_job(with_pattern(job, "{YYYY}/{MM}-{DD}.csv"), asked, when=asked.cloud.schedule)
    text = kubeflow_package(made)
    read = yaml.safe_load(text)
    assert kubeflow_package(copy.deepcopy(made)) == text
    assert read["defaultPipelineRoot"] == "gs://bucket/pipelines"
    given = read["root"]["inputDefinitions"]["parameters"].pop("scheduled_at")
    assert given["defaultValue"] == made["runtimeConfig"]["parameterValues"]["scheduled_at"]
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2 as types

    parsed = json_format.ParseDict(yaml.safe_load(text), types.PipelineSpec())
    assert parsed.default_pipeline_root == "gs://bucket/pipelines"
    assert 'schemaVersion: "2.1.0"' in text, "a text for every reader of YAML"


def test_look_up_runs_in_the_image_of_a_task_of_ours(job):
    first, *_ = [name for name, _ in container_tasks(job["pipelineSpec"])]
    executor_of(job["pipelineSpec"], first)["container"].update(image="another:1", command=["python"])
    spec = kubeflow_job(job, taxi_workload())["pipelineSpec"]
    looked_up = executor_of(spec, "Baseline-model-resolver")["container"]
    assert looked_up["image"] == "registry/slipway:1.0"


def test_look_up_beside_container_components_only_runs_in_the_workload_s_image(job):
    for _, container in container_tasks(job["pipelineSpec"]):
        container.update(image="another:1", command=["python"])
    spec = kubeflow_job(job, taxi_workload("cloud.image=registry/mine:2"))["pipelineSpec"]
    assert executor_of(spec, "Baseline-model-resolver")["container"]["image"] == "registry/mine:2"


@pytest.mark.parametrize(
    ("source", "span", "pattern", "expected"),
    [
        (BY_DAY, "2027-01-31", "{YYYY}/{MM}-{DD}.csv", "2027/01-31.csv"),
        ("data.source=gs://b/{SPAN}.csv", "7", "{SPAN}.csv", "7.csv"),
        ("data.source=gs://b/{SPAN:3}.csv", "7", "{SPAN:3}.csv", "007.csv"),
    ],
)
def test_span_that_is_named_stands_in_the_pattern(job, source, span, pattern, expected):
    made = kubeflow_job(with_pattern(job, pattern), taxi_workload(source, f"data.span={span}"))
    given = tasks_of(made["pipelineSpec"])["Ingest"]["inputs"]["parameters"]
    assert json.loads(given["input_config"]["runtimeValue"]["constant"])["splits"][0]["pattern"] == expected
    assert "range_config" not in given
    assert made["runtimeConfig"]["parameterValues"] == {}


def test_data_outside_the_image_is_never_cached_since_the_service_does_not_look_at_it(job):
    cached = ("cloud.cache=true", "cloud.image=r/i:1")

    def caching(job):
        return tasks_of(kubeflow_job(job, taxi_workload(*cached))["pipelineSpec"])["Ingest"]["cachingOptions"]

    tasks_of(job["pipelineSpec"])["Ingest"]["cachingOptions"] = {"enableCache": True}
    assert caching(job) == {"enableCache": True}, "the image's name is its content's"
    parameters = tasks_of(job["pipelineSpec"])["Ingest"]["inputs"]["parameters"]
    parameters["input_base"]["runtimeValue"]["constant"] = "gs://b/trips"
    assert caching(job) == {"enableCache": False}


@pytest.mark.parametrize(
    ("when", "words"),
    [
        (None, "does not find the latest span"),
        ("{}", "does not find the latest span"),
        ("{lag_days: 0, time_zone: Europe/Berlin}", "Europe/Berlin cannot be that of a schedule"),
    ],
)
def test_span_that_only_a_driver_would_find_is_refused(job, when, words):
    asked = taxi_workload(BY_DAY, f"cloud.schedule={when or {}}")
    with pytest.raises(ConfigError, match=words):
        kubeflow_job(
            with_pattern(job, "{YYYY}/{MM}-{DD}.csv"), asked, when=asked.cloud.schedule if when else None
        )


@pytest.mark.parametrize(
    ("sets", "key"),
    [(("beam.runner=flink",), r"beam\.runner"), (("train.device=tpu", "train.tpu=v5e-8"), r"train\.device")],
)
def test_other_machines_would_not_find_the_artifacts(job, sets, key):
    with pytest.raises(ConfigError, match=rf"{key}: on Kubeflow Pipelines .* in its container"):
        kubeflow_job(job, taxi_workload(*sets))


@pytest.mark.parametrize("text", ["a {{workflow.name}} b", '{"m": "{{=1+1}}"}', "{{ inputs.parameters.x }}"])
def test_text_that_argo_would_fill_in_is_refused(job, text):
    parameters = tasks_of(job["pipelineSpec"])["Trainer"]["inputs"]["parameters"]
    parameters["custom_config"] = {"runtimeValue": {"constant": text}}
    with pytest.raises(ConfigError, match=r"Trainer\.custom_config contains \{\{.*\}\}, which Argo"):
        kubeflow_job(job, taxi_workload())


@pytest.mark.parametrize(
    "text", ['{"a": {"b": {}}}', "{{ alone", "{{$}}", "Answer {{question}}: {{user.name}}"]
)
def test_braces_that_argo_leaves_as_they_are_pass(job, text):
    parameters = tasks_of(job["pipelineSpec"])["Trainer"]["inputs"]["parameters"]
    parameters["custom_config"] = {"runtimeValue": {"constant": text}}
    assert kubeflow_job(job, taxi_workload())


def test_version_is_refused(job):
    with pytest.raises(ConfigError, match=r"cannot resolve \{VERSION\}"):
        kubeflow_job(
            with_pattern(job, "{SPAN}-{VERSION}.csv"),
            taxi_workload("data.source=gs://b/{SPAN}-{VERSION}.csv", "data.span=1"),
        )


@pytest.mark.parametrize(
    ("when", "cron"),
    [
        (ScheduleConfig(cron="0 3 * * *"), "0 0 3 * * *"),
        (ScheduleConfig(cron="0 3 * * 7"), "0 0 3 * * 0"),
        (ScheduleConfig(cron="0 3 * * 07"), "0 0 3 * * 0"),
        (ScheduleConfig(cron="0 3 * * 1,5-7"), "0 0 3 * * 1,5,6,0"),
        (ScheduleConfig(cron="0 3 * * tue-7/2"), "0 0 3 * * 2,4,6"),
        (ScheduleConfig(cron="0 3 * * 1-6"), "0 0 3 * * 1-6"),
        (ScheduleConfig(cron="0 3 * * mon"), "0 0 3 * * mon"),
    ],
)
def test_cron_has_seconds(when, cron):
    assert kubeflow_cron(when) == cron


def test_schedule_in_another_time_zone_is_refused_because_the_backend_cannot_parse_one():
    with pytest.raises(ConfigError, match=r"cloud\.schedule\.time_zone: Europe/Berlin cannot be") as caught:
        kubeflow_cron(ScheduleConfig(time_zone="Europe/Berlin"))
    assert caught.value.hint.startswith("set time_zone: UTC, and write the hours")


def test_more_runs_at_once_than_the_backend_starts_are_refused():
    assert kubeflow_concurrency(ScheduleConfig(max_concurrent_runs=10)) == "10"
    with pytest.raises(
        ConfigError, match=r"cloud\.schedule\.max_concurrent_runs: 11 runs .* at most 10"
    ) as caught:
        kubeflow_concurrency(ScheduleConfig(max_concurrent_runs=11))
    assert caught.value.hint == "--set cloud.schedule.max_concurrent_runs=10"


def test_tasks_get_the_variables_and_secrets_that_the_workload_names(job):
    sets = (
        "cloud.kubeflow.variables={AWS_ENDPOINT_URL: 'http://store:9000', AWS_ALLOW_HTTP: 'true'}",
        "cloud.kubeflow.secrets={keys: {AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: key}}",
    )
    made = kubeflow_job(job, taxi_workload(*sets))
    containers = dict(container_tasks(made["pipelineSpec"]))
    assert {"Baseline-model-resolver", "Ingest", "Pusher"} < containers.keys()
    for container in containers.values():
        assert container["env"][-2:] == [
            {"name": "AWS_ENDPOINT_URL", "value": "http://store:9000"},
            {"name": "AWS_ALLOW_HTTP", "value": "true"},
        ]
    kubernetes = made["platformSpec"]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    labels = {component_of(made["pipelineSpec"], name)["executorLabel"] for name in containers}
    assert kubernetes.keys() == labels <= made["pipelineSpec"]["deploymentSpec"]["executors"].keys()
    keys = [
        {"secretKey": "id", "envVar": "AWS_ACCESS_KEY_ID"},
        {"secretKey": "key", "envVar": "AWS_SECRET_ACCESS_KEY"},
    ]
    assert all(
        each == {"secretAsEnv": [{"secretName": "keys", "keyToEnv": keys}]} for each in kubernetes.values()
    )
    pipeline, platform = yaml.safe_load_all(text := kubeflow_package(made))
    assert (pipeline["pipelineInfo"], platform) == ({"name": "taxi"}, made["platformSpec"])
    assert "&id" not in text, "no aliases, which not every parser reads"
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2 as types

    json_format.ParseDict(pipeline, types.PipelineSpec())
    json_format.ParseDict(platform, types.PlatformSpec())


def test_without_any_the_pipeline_is_alone_in_its_file(job):
    made = kubeflow_job(job, taxi_workload())
    assert "platformSpec" not in made
    assert len(list(yaml.safe_load_all(kubeflow_package(made)))) == 1
