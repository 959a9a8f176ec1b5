"""What a rehearsal compiles."""

import pytest

from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.cloud.image_contents import read_image
from slipway.pipeline.cloud.rehearsal.rehearsal_target import left_out, rehearsal_target, with_image
from slipway.pipeline.cloud.rehearsal.services import ServiceName
from slipway.pipeline.cloud.workload_in_image import Target
from slipway.pipeline.config import WorkloadChoice, read_assignments, read_parameters
from slipway.pipeline.errors import ConfigError, UsageError
from slipway.pipeline.plan.run_request import pipeline_request, workload_request


@pytest.fixture
def target(project, tmp_path):
    def make(*sets, root=None, pipeline=None, service=ServiceName.VERTEX, output=""):
        options = {"output": tmp_path, "beam_args": ()}
        if pipeline:
            request = pipeline_request(pipeline, parameters=read_parameters(sets), **options)
        else:
            chosen = WorkloadChoice(project / "workloads/taxi/workload.yaml", read_assignments(sets))
            request = workload_request(chosen, **options)
        places = {"output": tmp_path / output / "rehearsal", "staged": tmp_path / "staged"}
        return rehearsal_target(request, read_image(project), root=root, service=service, **places)

    return make


def test_artifacts_go_where_the_root_says_and_models_never_to_their_real_destination(target, tmp_path):
    sets = ("push.destination=gs://bucket/serving", "cloud.root=gs://bucket/real")
    assert target(*sets).root == f"{tmp_path}/rehearsal/artifacts/taxi"
    assert target(*sets, root="gs://other/place/").root == "gs://other/place"
    assert "gs://bucket/serving" not in target(*sets).config
    assert f"{tmp_path}/rehearsal/serving/taxi" in target(*sets).config


def test_nothing_that_follows_a_push_follows_that_of_a_rehearsal(target):
    sets = (
        "push.destination=gs://bucket/serving",
        "push.endpoint={name: taxi, container: image}",
        "push.hook=[reload, taxi]",
        "cloud.vertex={project: p, region: europe-west4}",
    )
    settings = target(*sets).settings
    assert (settings.push.endpoint, settings.push.hook) == (None, ()), "read by the task server as they are"
    real = WorkloadChoice(PROJECT_ROOT / "workloads/taxi/workload.yaml", read_assignments(sets)).config()
    assert left_out(real) == ("push.hook", "push.endpoint")
    assert left_out(settings) == ()


def test_relative_root_is_that_of_the_current_folder_wherever_tasks_run(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = target("cloud.image=slipway:1", root="art")
    assert with_image(made).root == made.root == f"{tmp_path}/art"
    assert made.settings.train.checkpoint.folder == f"{tmp_path}/art/checkpoints/taxi"


def test_root_on_s3_is_refused_for_tfx_has_no_file_system_there(target):
    with pytest.raises(UsageError, match=r"--root s3://bucket/x: TFX and TensorFlow .* have no file system"):
        target(root="s3://bucket/x")
    with pytest.raises(UsageError, match=r"--root minio://bucket/x: TFX and TensorFlow") as caught:
        target(root="minio://bucket/x")
    assert caught.value.hint.endswith("s3:// goes with --service kubeflow")


@pytest.mark.parametrize("root", ["s3://bucket/x", "minio://bucket/x"])
def test_kubeflow_takes_a_root_that_its_launcher_carries_and_keeps_checkpoints_there(target, root):
    made = target(root=f"{root}/", service=ServiceName.KUBEFLOW)
    assert made.root == root
    assert made.settings.train.checkpoint.folder == f"{root}/checkpoints/taxi"


@pytest.mark.parametrize("root", ["s3://bucket/x", "minio://bucket/x/"])
def test_kubeflow_s_records_of_a_rehearsal_are_not_where_real_runs_look(target, root):
    own = ("cloud.service=kubeflow", "cloud.root=s3://bucket/x")
    with pytest.raises(UsageError, match=r"is cloud\.root, where real runs look") as refused:
        target(*own, root=root, service=ServiceName.KUBEFLOW)
    assert refused.value.hint.startswith("name another, such as s3://bucket/x-rehearsals")
    assert target(*own, root="s3://bucket/y", service=ServiceName.KUBEFLOW).root == "s3://bucket/y"


def test_service_is_handed_on_and_kubeflow_takes_no_root_elsewhere_and_no_other_pipeline(
    target, project, monkeypatch
):
    assert target().service == "vertex"
    there = {"service": ServiceName.KUBEFLOW_WITHOUT_MLMD}
    assert target(**there).service == "kubeflow-without-mlmd"
    for root in ("gs://b/x", "/x", "az://b/x", "s3://b"):
        with pytest.raises(
            UsageError, match=rf"--root {root}: Kubeflow's launcher brings artifacts"
        ) as caught:
            target(root=root, **there)
        assert caught.value.hint == "name s3:// or minio://BUCKET/PATH, or leave --root out"
    monkeypatch.chdir(project)
    with pytest.raises(UsageError, match="TFX's own entry point, which fails at what Kubeflow's launcher"):
        target(pipeline="module:function", **there)


@pytest.mark.parametrize(
    ("sets", "key"),
    [(("beam.runner=flink",), r"beam\.runner"), (("train.device=tpu", "train.tpu=v5e-8"), r"train\.device")],
)
def test_kubeflow_refuses_other_machines_as_it_does_when_the_job_is_submitted(target, sets, key):
    with pytest.raises(ConfigError, match=rf"{key}: on Kubeflow Pipelines .* in its container"):
        target(*sets, service=ServiceName.KUBEFLOW)


def test_beam_runs_on_the_cluster_that_the_workload_names_only_where_its_workers_see_the_artifacts(target):
    cluster = "beam={runner: flink, options: {job_endpoint: 'flink:8099'}}"
    assert target(cluster, root="gs://b/art").settings.beam.options == {"job_endpoint": "flink:8099"}
    direct = target(cluster, "beam.runner=direct", root="gs://b/art")
    for elsewhere in (target(cluster), target("beam.runner=flink", root="gs://b/art"), direct):
        assert (elsewhere.settings.beam.runner, elsewhere.settings.beam.options) == ("direct", {})


def test_nodes_that_run_with_tfx_s_own_executor_do_so_in_a_rehearsal(target):
    assert target("beam.stock_nodes=[Transform]").settings.beam.stock_nodes == ["Transform"]


def test_training_for_tpus_takes_what_is_here_but_no_slice_that_is_not_there(target, project):
    tpu = ("train.device=tpu", "train.backend=jax", "train.interpreter=.venv-jax/bin/python")
    made = target(*tpu, "train.tpu=v5e-8")
    assert Target.of_run(made).training_job is None
    assert '"device":"auto"' in made.config
    assert f'"interpreter":"{project}/.venv-jax/bin/python"' in made.config
    with pytest.raises(ConfigError, match="no slice 'v5e-9'"):
        target(*tpu, "train.tpu=v5e-9")


def test_other_pipeline_is_imported_from_the_copy_of_the_image_where_it_is_in_the_project(
    target, project, tmp_path, monkeypatch
):
    monkeypatch.chdir(project)
    made = target("a=1", pipeline="module:function")
    assert (made.pipeline, made.folder) == ("module:function", str(tmp_path / "staged"))
    assert made.parameters == {"a": "1"}
    assert made.root == f"{tmp_path}/rehearsal/artifacts/module.function"
    monkeypatch.chdir(tmp_path)
    assert target(pipeline="module:function").folder == str(tmp_path)


def test_containers_need_an_image_and_nothing_of_this_machine(target):
    image = "cloud.image=slipway:1"
    assert with_image(target(image, root="gs://b/art")).root == "gs://b/art"
    for given, message in (
        (target(), "cloud.image names none"),
        (target(image, service=ServiceName.KUBEFLOW), "as Vertex AI runs them, not as kubeflow does"),
        (target(image, root="/tmp"), "--containers: tasks write to /tmp, and"),  # noqa: S108
        (target(image, root="/opt"), "--containers: tasks write to /opt, and"),
        (target(image, root="/data,1"), "--containers: tasks write to /data,1, and"),
        (target(image, root="gs://b/art", output="a,1"), "a,1/rehearsal/serving/taxi, and"),
        (
            target(
                image,
                "train.device=tpu",
                "train.tpu=v5e-8",
                "train.backend=jax",
                "train.interpreter=.venv-jax/bin/python",
            ),
            "train.interpreter, .*.venv-jax/bin/python, exists on this machine only",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            with_image(given)
