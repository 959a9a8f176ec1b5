"""The workload with the paths of the image, and what a cloud cannot see."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from taxi_workload import taxi_workload

from slipway.pipeline.cloud.image_contents import IMAGE_PACKAGES, Image, read_image
from slipway.pipeline.cloud.workload_in_image import Target, refuse_sql
from slipway.pipeline.config import DataConfig, WorkloadChoice, read_assignments
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.plan.run_request import workload_request

CLOUD = {
    "cloud.image": "registry/slipway:1.0",
    "cloud.root": "gs://bucket/pipelines/",
    "push.destination": "gs://bucket/serving",
}


@pytest.fixture
def target(project, tmp_path):
    def make(*, is_sent=False, **changed):
        settings = {**CLOUD, **changed}
        sets = [f"{key}={value}" for key, value in settings.items() if value is not None]
        chosen = WorkloadChoice(project / "workloads/taxi/workload.yaml", read_assignments(sets))
        request = workload_request(chosen, output=tmp_path, beam_args=())
        return Target.for_cloud_run(request, read_image(project), is_sent=is_sent)

    return make


def test_paths_of_the_workload_are_those_of_the_image(target):
    made = target()
    assert made.config.schema_path == "/opt/slipway/schemas/taxi.pbtxt"
    folder, patterns = made.source
    assert folder == f"{IMAGE_PACKAGES}/tfx/examples/chicago_taxi_pipeline/data/simple"
    assert patterns == {"all": "data.csv"}
    assert (made.image, made.root) == ("registry/slipway:1.0", "gs://bucket/pipelines")
    assert made.config.push.destination == "gs://bucket/serving"


def test_name_that_no_job_may_have_is_refused_with_one_that_it_may(target):
    with pytest.raises(ConfigError, match="name: taxi_trips cannot be the name of a job") as refused:
        target(name="taxi_trips")
    assert refused.value.hint.endswith("--set name=taxi-trips")
    assert target(name="taxi-trips").config.name == "taxi-trips"


def test_training_that_the_machines_would_refuse_is_refused_before_it_is_sent(target):
    gpus = {"train.device": "gpu", "cloud.tasks": "{Trainer: {accelerator: T4, accelerator_count: 2}}"}
    with pytest.raises(ConfigError, match=r"^train\.accumulate_steps cannot be used by Keras 3"):
        target(**gpus, **{"train.accumulate_steps": "2"})
    with pytest.raises(ConfigError, match="must be a multiple of the 2 replicas of 2 GPUs of the Trainer's"):
        target(**gpus, **{"train.batch_size": "101"})
    hosts = {"train.device": "tpu", "train.tpu": "v5e-16", "train.backend": "jax"}
    vertex = {"cloud.vertex": "{project: p, region: europe-west4}"}
    with pytest.raises(ConfigError, match=r"^train\.blow_up\.trials \(1\) must be 0 on several hosts"):
        target(**hosts, **vertex, **{"train.blow_up.trials": "1"})
    made = target(**hosts, **vertex, **{"train.early_stopping.patience": "2"})
    assert made.config.train.checkpoint.folder == "gs://bucket/pipelines/checkpoints/taxi", "common to all"


def test_data_on_gs_is_taken_as_it_is(target):
    assert target(**{"data.source": "gs://bucket/trips/*.csv"}).source == (
        "gs://bucket/trips",
        {"all": "*.csv"},
    )


def test_query_needs_no_file_in_the_image(target):
    query = "SELECT * FROM `project.trips.all`"
    made = target(**{"data.format": "bigquery", "data.source": "null", "data.query": query})
    assert (made.config.data.query, made.source[1]) == (query, {})


def test_a_source_by_sql_is_refused():
    data = DataConfig(format="sql", label="tips", tables={"trips": {"files": "data/trips.parquet"}})
    with pytest.raises(ConfigError, match=r"data\.format: sql runs on this machine only") as refused:
        refuse_sql(SimpleNamespace(data=data))
    assert "run NAME --to Ingest" in refused.value.hint


@pytest.mark.parametrize("key", CLOUD)
def test_what_a_cloud_run_needs_is_asked_for(target, key):
    with pytest.raises(ConfigError, match=f"{key} is not set, and a cloud run needs it"):
        target(**{key: None})


def test_all_that_is_missing_or_wrong_is_reported_at_once_with_a_profile_to_paste(target, tmp_path):
    data, schema = tmp_path / "trips.csv", tmp_path / "schema.pbtxt"
    data.write_text("tips,payment_type,trip_start_timestamp\n1,Cash,1368183600\n")
    schema.touch()
    wrong = {"data.source": str(data), "schema": str(schema), "evaluate.slices": "[[payment_type]]"}
    with pytest.raises(ConfigError) as refused:
        target(is_sent=True, **dict.fromkeys(CLOUD), **wrong, **{"train.device": "gpu"})
    head, *lines = refused.value.message.splitlines()
    assert head == "8 problems"
    assert [line.split()[0].rstrip(":") for line in lines] == [
        *CLOUD, "cloud.vertex.project", "cloud.vertex.region", "train.device", "schema", "data.source",
    ]  # fmt: skip
    assert lines[-1].endswith("put it on gs://, or below workloads/, which is part of the image")
    where, _, profile = refused.value.hint.partition("\n")
    assert "in place of a `prod: {}` there" in where  # as in taxi's file; twice the same key is refused
    settings = yaml.safe_load(f"profiles:\n  dev: {{}}\n{profile}")["profiles"]["prod"]
    assert settings == {
        "cloud": {
            "image": "REGION-docker.pkg.dev/PROJECT/slipway/slipway:1.0",
            "root": "gs://BUCKET/pipelines",
            "vertex": {"project": "PROJECT", "region": "europe-west4"},
        },
        "push": {"destination": "gs://BUCKET/serving/taxi"},
    }


def test_span_as_the_reference_is_refused_with_what_can_be_named_instead(target):
    with pytest.raises(ConfigError, match=r"data_gate\.reference: span 12 can be looked up by a run on") as e:
        target(**{"data_gate.reference": "span 12"})
    assert "--set data_gate.reference=gs://..." in e.value.hint
    folder = "gs://bucket/pipelines/taxi/StatisticsGen/12"
    made = target(**{"data_gate.reference": folder})
    assert made.config.data_gate.reference == folder


def test_gpu_without_an_accelerator_is_refused(target):
    with pytest.raises(
        ConfigError, match=r"train\.device is gpu, but the Trainer's container asks for no accelerator"
    ):
        target(**{"train.device": "gpu"})
    named = {"train.device": "gpu", "cloud.tasks": "{Trainer: {accelerator: NVIDIA_TESLA_T4}}"}
    assert target(**named).config.train.device == "gpu"


def test_training_on_a_tpu_becomes_a_job_of_its_own_with_the_one_python_of_its_image(target):
    made = target(
        **{
            "train": "{device: tpu, tpu: v5e-8, backend: jax, interpreter: .venv-jax/bin/python}",
            "cloud.vertex": "{project: p, region: europe-west4}",
        }
    )
    assert made.training_job["customJob"]["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] == {
        "machineType": "ct5lp-hightpu-8t", "tpuTopology": "2x4"
    }  # fmt: skip
    assert made.config.train.interpreter is None
    trained_in_its_task = replace(made, training_job=None)
    assert Target.of_run(made.image_run) == trained_in_its_task, "a rehearsal sends no job"


def test_training_on_a_tpu_without_a_root_on_gs_is_refused(target):
    tpu = {"train.device": "tpu", "train.tpu": "v5e-8", "cloud.root": None}
    with pytest.raises(ConfigError, match=r"cloud.root is not set, and a cloud run needs it: gs://"):
        target(**tpu)


@pytest.mark.parametrize(
    "machines", [{"train": "{device: tpu, tpu: v5e-8, backend: jax}"}, {"beam.runner": "dataflow"}]
)
def test_machines_that_kubeflow_s_tasks_cannot_use_are_refused_before_their_settings_are_asked_for(
    target, machines
):
    with pytest.raises(ConfigError, match=r"^(train\.device|beam\.runner): on Kubeflow Pipelines") as refused:
        target(**machines, **{"cloud.service": "kubeflow"})
    assert refused.value.hint in ("cloud.service: vertex", "--set beam.runner=direct")


@pytest.mark.parametrize("folder", ["checkpoints", "~/checkpoints", "/scratch/checkpoints"])
def test_checkpoints_in_the_container_of_one_attempt_are_refused(target, folder):
    with pytest.raises(ConfigError, match="would be in the container of one attempt") as refused:
        target(**{"train.checkpoint.folder": folder})
    assert "null keeps them below cloud.root" in refused.value.hint


def test_checkpoints_in_a_store_or_a_mounted_bucket_are_taken(target):
    for folder in ("gs://bucket/checkpoints", "s3://bucket/checkpoints", "/gcs/bucket/checkpoints"):
        assert target(**{"train.checkpoint.folder": folder}).config.train.checkpoint.folder == folder
    with pytest.raises(ConfigError, match="container of one attempt"):
        target(**{"train.checkpoint.folder": "/gcs/b/c", "cloud.service": "kubeflow"})


def test_code_that_is_not_in_the_image_is_refused(target, project, tmp_path, monkeypatch):
    from slipway.pipeline.cloud import workload_in_image

    own = project / "elsewhere" / "features.py"
    monkeypatch.setattr(
        workload_in_image, "files_imported", lambda path, root: [own] if "preprocessing" in path else []
    )
    with pytest.raises(
        ConfigError, match=f"transform.preprocessing_fn: {own} is on this machine only"
    ) as refused:
        target()
    assert "below workloads/" in refused.value.hint
    assert "gs://" not in refused.value.hint


def test_code_in_a_linked_folder_is_where_the_link_leads(tmp_path, monkeypatch):
    """The image has the link, and the folder; in its list of files are the link and the folder's own."""
    from slipway.pipeline.cloud import workload_in_image

    config = taxi_workload()
    for place in ("workloads/common", "workloads/taxi"):
        (tmp_path / place).mkdir(parents=True)
    file, link = tmp_path / "workloads/common/features.py", tmp_path / "workloads/taxi/linked"
    file.touch()
    link.symlink_to("../common")
    image = Image(tmp_path, frozenset({"workloads/common/features.py", "workloads/taxi/linked"}), Path("/p"))
    monkeypatch.setattr(workload_in_image, "files_imported", lambda path, root: [link / "features.py"])
    workload_in_image._refuse_code_here(config, image)
    file.rename(tmp_path / "features.py")
    file.symlink_to("../../features.py")  # a link that leads nowhere in the image
    with pytest.raises(ConfigError, match="is on this machine only"):
        workload_in_image._refuse_code_here(config, image)


def test_python_of_this_machine_is_refused_where_the_image_trains(target):
    with pytest.raises(ConfigError, match=r"train.interpreter: .venv-jax/bin/python is on this machine only"):
        target(**{"train.interpreter": ".venv-jax/bin/python"})


def test_checkpoints_are_kept_below_the_root_unless_the_workload_says_where(target):
    assert target().config.train.checkpoint.folder == "gs://bucket/pipelines/checkpoints/taxi"
    named = target(**{"train.checkpoint.folder": "gs://other/place"})
    assert named.config.train.checkpoint.folder == "gs://other/place"


def test_push_destination_on_this_machine_is_refused(target, tmp_path):
    with pytest.raises(ConfigError, match=f"push.destination: {tmp_path} is a folder of this machine"):
        target(**{"push.destination": str(tmp_path)})


def test_data_in_a_store_that_a_cloud_run_does_not_know_is_refused(target):
    with pytest.raises(ConfigError, match=r"data\.source: s3://bucket can be used by a run on this machine"):
        target(**{"data.source": "s3://bucket/trips.csv"})
    commit = "0" * 40  # which is not asked for
    with pytest.raises(ConfigError, match=rf"data\.source: hf://datasets/o/n@{commit} can be used") as caught:
        target(**{"data.source": f"hf://datasets/o/n@{commit}/trips.csv"})
    assert "`gcloud storage cp -r` copies what `hf download` fetched" in caught.value.hint
    with pytest.raises(ConfigError, match=r"push\.destination: az://box/taxi can be used by a run on this"):
        target(**{"push.destination": "az://box/taxi"})


def test_refused_destination_is_not_told_how_to_copy_a_source(target):
    with pytest.raises(ConfigError, match=r"by one on Vertex AI, whose tasks know gs:// only") as caught:
        target(**{"push.destination": "s3://bucket/taxi"})
    assert "cp -r" not in caught.value.hint
    assert "cloud.service: kubeflow" in caught.value.hint
    with pytest.raises(ConfigError) as caught:
        target(**{"data.source": "az://bucket/trips.csv"})
    assert caught.value.hint == "name gs://BUCKET/PATH in the cloud's profile", (
        "gcloud does not copy from there"
    )


@pytest.mark.parametrize("root", ["s3://bucket/pipelines", "minio://bucket/pipelines"])
def test_kubeflow_s_artifacts_models_and_data_may_be_on_s3(target, root):
    there = {"data.source": "s3://bucket/trips/*.csv", "push.destination": "az://box/taxi"}
    made = target(**{"cloud.service": "kubeflow", "cloud.root": f"{root}/", **there})
    assert made.root == root
    assert made.places == {
        "cloud.root": root, "push.destination": "az://box/taxi", "data.source": "s3://bucket/trips",
    }  # fmt: skip
    assert made.config.train.checkpoint.folder == f"{root}/checkpoints/taxi"
    with pytest.raises(
        ConfigError, match=r"not by one on Kubeflow, whose tasks know gs://, s3:// and az:// only"
    ):
        target(**{"cloud.service": "kubeflow", "data.source": f"hf://datasets/o/n@{'0' * 40}/trips.csv"})
    with pytest.raises(ConfigError, match=r"cloud\.root is not set, .*: gs://, s3:// or minio://BUCKET/PATH"):
        target(**{"cloud.service": "kubeflow", "cloud.root": None})


def test_private_key_by_its_path_is_refused_as_it_would_lie_in_the_image(target, tmp_path):
    with pytest.raises(ConfigError, match=r"push\.sign\.key: .*signing\.pem is a file of this machine"):
        target(**{"push.sign.key": str(tmp_path / "signing.pem")})
    assert target(**{"push.sign.key_env": "KEY"}).config.push.sign.key_env == "KEY"


def test_data_on_this_machine_is_refused_with_both_remedies(target, tmp_path):
    file = tmp_path / "trips.csv"
    file.write_text("tips,payment_type,trip_start_timestamp\n1,Cash,1368183600\n")
    with pytest.raises(ConfigError, match=f"data.source: {file} is on this machine only") as refused:
        target(**{"data.source": str(file), "evaluate.slices": "[[payment_type]]"})
    assert "gs://, or below workloads/" in refused.value.hint


def test_schema_outside_of_the_image_is_refused(target, tmp_path):
    schema = tmp_path / "schema.pbtxt"
    schema.touch()
    with pytest.raises(ConfigError, match=f"schema: {schema} is on this machine only"):
        target(schema=str(schema))


def test_pretrained_weights_outside_of_the_image_are_refused(target, project, tmp_path):
    weights = tmp_path / "before.weights.h5"
    weights.touch()
    with pytest.raises(ConfigError, match=f"train.pretrained: {weights} is on this machine only") as refused:
        target(**{"train.pretrained": f"{{path: {weights}}}"})
    assert "or below workloads/" in refused.value.hint
    travels = "workloads/taxi/model.py"
    for path in (travels, project / travels):
        assert target(**{"train.pretrained": f"{{path: {path}}}"}).config.train.pretrained.path == travels
    far = {"path": "gs://bucket/w.h5", "sha256": "0" * 64}
    made = target(**{"train.pretrained.path": far["path"], "train.pretrained.sha256": far["sha256"]})
    assert made.config.train.pretrained.model_dump() == far


def test_statistics_to_compare_with_are_those_in_the_image(target, project, tmp_path):
    folder = tmp_path / "workloads/taxi/before"
    (folder / "Split-train").mkdir(parents=True)
    for key in ("reference", "serving_statistics"):
        with pytest.raises(ConfigError, match=f"data_gate.{key}: {folder} is on this machine only"):
            target(**{f"data_gate.{key}": str(folder)})
    far = target(**{"data_gate.reference": "gs://bucket/before"})
    assert far.config.data_gate.reference == "gs://bucket/before"
    sets = [f"{key}={value}" for key, value in CLOUD.items()]
    sets += ["schema=null", f"data_gate.reference={folder}"]
    chosen = WorkloadChoice(project / "workloads/taxi/workload.yaml", read_assignments(sets))
    files = frozenset({"workloads/taxi/before/Split-train/FeatureStats.pb"})
    made = Target.for_cloud_run(
        workload_request(chosen, output=tmp_path, beam_args=()),
        replace(read_image(project), root=tmp_path, files=files),
    )
    assert made.config.data_gate.reference == "/opt/slipway/workloads/taxi/before"


@pytest.mark.parametrize("hook", ["[./tell.sh]", "[sh, Makefile]", "[./Makefile]", "[workloads/../Makefile]"])
def test_hook_of_a_file_that_is_not_in_the_image_is_refused(target, hook):
    """It would run after each push, and fail."""
    with pytest.raises(ConfigError, match=r"push\.hook: .* is on this machine only") as refused:
        target(**{"push.hook": hook})
    assert "below workloads/" in refused.value.hint


@pytest.mark.parametrize(
    "hook",
    [
        "[python, workloads/taxi/model.py]",
        "[/bin/sh, -c, date]",
        "[curl, -f]",
        "[Makefile, all]",
        f"[sh, -c, {'echo ' * 100}]",
    ],
)
def test_hook_that_the_image_may_have_is_taken(target, hook):
    assert len(target(**{"push.hook": hook}).config.push.hook) >= 2
