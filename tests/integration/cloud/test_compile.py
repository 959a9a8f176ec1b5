"""Workloads compiled for Vertex AI Pipelines and Kubeflow, as a user does it."""

import json
import shlex

import pytest
import yaml
from installed import needed

needed("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = pytest.mark.slow

SETTINGS = [
    "cloud.image=registry/slipway:1.0",
    "cloud.root=gs://bucket/pipelines",
    "cloud.labels={team: rides}",
    "push.destination=gs://bucket/serving",
    "nodes={Trainer: {retries: 2, timeout_s: 7200}}",
]


ON_TPUS = [
    "train.device=tpu",
    "train.tpu=v5e-16",
    "train.backend=jax",
    "cloud.vertex={project: my-project, region: europe-west4}",
    "cloud.training.spot=true",
]


@pytest.fixture(params=["taxi", "digits"])
def workload(request):
    return request.param


def test_compiled_job_is_the_golden_one_and_the_service_s_types_read_it(
    cloud_runner, cloud_here, project, workload, tmp_path
):
    golden = project / "tests" / "data" / "cloud" / f"{workload}.json"
    settings = [*SETTINGS, *(ON_TPUS if workload == "digits" else ())]
    words = ["compile", workload, *(word for setting in settings for word in ("--set", setting))]
    file = tmp_path / "job.json"
    is_apart = workload == "taxi"
    finished = (cloud_runner if is_apart else cloud_here)(*words, "-o", str(file))
    assert (finished.returncode, finished.stdout) == (0, f"{file}\n"), finished.stderr
    told = [line for line in finished.stderr.splitlines() if "still working" not in line]
    # Here TFX may be imported already, and what takes no time is not told.
    wanted = [f"{workload}: compiles"]
    assert told == wanted or (told == [] and not is_apart), "nothing of what libraries say of themselves"
    again = shlex.join(["python", "cloud_runner.py", *words, "-o", str(golden.relative_to(project))])
    assert file.read_text() == golden.read_text(), f"wanted? {again}"
    job = json.loads(file.read_text())
    _check_types(job)
    _check_training_job(job, is_asked_for=workload == "digits")


def _check_types(job):
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2 as types

    read = json_format.ParseDict(job, types.PipelineJob())
    spec = json_format.ParseDict(json_format.MessageToDict(read.pipeline_spec), types.PipelineSpec())
    deployment = json_format.ParseDict(
        json_format.MessageToDict(spec.deployment_spec), types.PipelineDeploymentConfig()
    )
    trainer = deployment.executors["Trainer_executor"].container
    assert trainer.resources.cpu_limit == 4
    assert trainer.command[:3] == ["timeout", "--kill-after=10", "7200"]
    assert deployment.executors["Ingest_executor"].container.resources.memory_limit == 16
    assert spec.root.dag.tasks["Trainer"].retry_policy.max_retry_count == 2
    assert spec.schema_version == "2.1.0"
    for name in spec.root.dag.tasks:
        executor = deployment.executors[f"{name}_executor"]
        if executor.HasField("container"):
            assert executor.container.resources.memory_limit == 16, name
            assert spec.root.dag.tasks[name].HasField("caching_options"), name


def _check_training_job(job, *, is_asked_for):
    parameters = job["pipelineSpec"]["root"]["dag"]["tasks"]["Trainer"]["inputs"]["parameters"]
    settings = json.loads(parameters["custom_config"]["runtimeValue"]["constant"])
    assert ("training_job" in settings) == is_asked_for
    if is_asked_for:
        vertex = pytest.importorskip("google.cloud.aiplatform_v1")
        asked = vertex.CustomJob.from_json(json.dumps(settings["training_job"]["customJob"]))
        assert asked.job_spec.worker_pool_specs[0].machine_spec.tpu_topology == "4x4"


def test_pipeline_for_kubeflow_is_yaml_that_its_types_read(cloud_here, tmp_path):
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2 as types

    file = tmp_path / "taxi.yaml"
    words = ["compile", "taxi", *(word for setting in SETTINGS for word in ("--set", setting))]
    finished = cloud_here(*words, "--service", "kubeflow", "-o", str(file))
    assert finished.returncode == 0, finished.stderr
    spec = json_format.ParseDict(yaml.safe_load(file.read_text()), types.PipelineSpec())
    assert (spec.pipeline_info.name, spec.default_pipeline_root) == ("taxi", "gs://bucket/pipelines")
    executors = json_format.MessageToDict(spec.deployment_spec)["executors"]
    assert not any("resolver" in executor for executor in executors.values())
    trainer = executors["Trainer_executor"]["container"]["command"]
    assert "slipway.pipeline.cloud.container.kubeflow_task" in trainer


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("os.path.join", "cannot be called: TypeError: join() missing 1 required positional argument"),
        ("os.path.jion", "cannot be called: AttributeError: module 'posixpath' has no attribute 'jion'"),
        ("os.getcwd", "which is no component"),
    ],
)
def test_exit_handler_that_is_none_is_refused_in_words(cloud_here, path, words):
    settings = [*SETTINGS, f"cloud.exit_handler={path}"]
    finished = cloud_here("compile", "taxi", *(word for setting in settings for word in ("--set", setting)))
    assert finished.returncode == 2
    assert f"cloud.exit_handler: {path} " in finished.stderr
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr
