"""Workloads compiled for Vertex AI Pipelines and Kubeflow, as a user does it."""

import json
import shlex

import pytest

pytest.importorskip("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = pytest.mark.slow

SETTINGS = [
    "cloud.image=registry/slipway:1.0",
    "cloud.root=gs://bucket/pipelines",
    "cloud.labels={team: rides}",
    "push.destination=gs://bucket/serving",
    "nodes={Trainer: {retries: 2, timeout_s: 7200}}",
]


@pytest.fixture(params=["taxi", "digits"])
def workload(request):
    return request.param


def test_compiled_job_is_the_golden_one_and_the_service_s_types_read_it(
    cloud_runner, project, workload, tmp_path
):
    golden = project / "tests" / "data" / "cloud" / f"{workload}.json"
    words = ["compile", workload, *(word for setting in SETTINGS for word in ("--set", setting))]
    file = tmp_path / "job.json"
    finished = cloud_runner(*words, "-o", str(file))
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, f"{file}\n", "")
    again = shlex.join(["python", "cloud_runner.py", *words, "-o", str(golden.relative_to(project))])
    assert file.read_text() == golden.read_text(), f"wanted? {again}"
    _check_types(json.loads(file.read_text()))


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
