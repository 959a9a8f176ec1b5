"""The request for a training job on TPUs, read back by the service's own types."""

import json

import pytest
from taxi_workload import taxi_workload

from slipway.pipeline.cloud.tpu_training_job import training_job
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.wiring.vertex_tpu_slices import TPU_SLICES

NEEDED = (
    "train.device=tpu",
    "train.backend=jax",
    "cloud.image=registry/slipway:1.0",
    "cloud.vertex={project: p, region: europe-west4}",
)


@pytest.fixture
def request_of():
    def make(*sets):
        return training_job(taxi_workload(*NEEDED, *sets))

    return make


def spec_of(request):
    return request["customJob"]["jobSpec"]


def test_training_here_needs_no_job(request_of):
    assert request_of("train.device=auto") is None


def test_request_is_the_same_each_time_and_holds_what_the_workload_says(request_of):
    sets = (
        "train.tpu=v5e-16",
        "train.batch_size=512",
        "cloud.labels={team: rides}",
        "cloud.training.spot=true",
        "cloud.vertex={project: p, region: europe-west4, service_account: a@p.iam.gserviceaccount.com, "
        "network: projects/1/global/networks/n, "
        "encryption_key: projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k}",
        "nodes={Trainer: {timeout_s: 7200.5}}",
    )
    request = request_of(*sets)
    assert request == request_of(*sets)
    assert request == {
        "project": "p",
        "region": "europe-west4",
        "endpoint": "https://europe-west4-aiplatform.googleapis.com",
        "customJob": {
            "displayName": "taxi-training",
            "labels": {"team": "rides", "slipway_workload": "taxi"},
            "encryptionSpec": {"kmsKeyName": "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k"},
            "jobSpec": {
                "workerPoolSpecs": [
                    {
                        "machineSpec": {"machineType": "ct5lp-hightpu-4t", "tpuTopology": "4x4"},
                        "replicaCount": "1",
                        "containerSpec": {
                            "imageUri": "registry/slipway:1.0-tpu",
                            "command": ["python", "-m", "slipway.components.trainer.remote.worker"],
                            "env": [{"name": "KERAS_BACKEND", "value": "jax"}],
                        },
                    }
                ],
                "scheduling": {"strategy": "SPOT", "restartJobOnWorkerRestart": True, "timeout": "7201s"},
                "serviceAccount": "a@p.iam.gserviceaccount.com",
                "network": "projects/1/global/networks/n",
            },
        },
    }


def test_one_host_restarts_alone_and_costs_the_standard_price_by_default(request_of):
    assert spec_of(request_of("train.tpu=v5e-8"))["scheduling"] == {"strategy": "STANDARD"}


def test_image_of_a_digest_must_be_named(request_of):
    with pytest.raises(
        ConfigError, match=r"cloud.training.image is not set, and cloud.image .*@sha256"
    ) as no:
        request_of("train.tpu=v5e-8", f"cloud.image=r/i@sha256:{'0' * 64}")
    assert "make image TARGET=training-tpu" in no.value.hint
    named = spec_of(request_of("train.tpu=v5e-8", "cloud.training.image=r/other"))
    assert named["workerPoolSpecs"][0]["containerSpec"]["imageUri"] == "r/other"


def test_tensorflow_trains_in_an_image_with_its_own_build(request_of):
    spec = spec_of(request_of("train.tpu=v5e-8", "train.backend=tensorflow"))
    assert spec["workerPoolSpecs"][0]["containerSpec"]["imageUri"] == "registry/slipway:1.0-tpu-tensorflow"


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ([], "train.device is tpu, but train.tpu names no slice"),
        (["train.tpu=v5e-12"], r"no slice 'v5e-12'; nearest: v5e-1\S*, v5e-"),
        (["train.tpu=v6e-8", "train.backend=tensorflow"], "does not run on v6e-8: from v6e on, TPUs run JAX"),
        (["train.tpu=v7-8", "train.backend=tensorflow"], "does not run on v7-8: from v6e on"),
        (["train.tpu=v5e-16", "train.backend=tensorflow"], "v5e-16 has 4 hosts: Keras 3 trains on several"),
        (["train.tpu=v5e-8", "train.backend=torch"], "torch, which cannot train on a TPU"),
        (
            ["train.tpu=v5e-8", "train.batch_size=100"],
            r"\(100\) must be a multiple of the 8 replicas of v5e-8",
        ),
        (
            ["train.tpu=v5e-8", "cloud.vertex.region=null"],
            "cloud.vertex.region is not set, and a training job",
        ),
        (
            ["train.tpu=v5e-8", "train.backend=tensorflow", "train.accumulate_steps=2"],
            "train.accumulate_steps cannot be used by Keras 3 with several TensorFlow devices or a TPU",
        ),
        (
            ["train.tpu=v5e-16", "train.blow_up.trials=1"],
            r"train.blow_up.trials \(1\) must be 0 on several hosts, but there are 4",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_runs(request_of, sets, words):
    with pytest.raises(ConfigError, match=words):
        request_of(*sets)


TUNE = "tune={search: {learning_rate: {choices: [0.1, 0.01]}}, metric: val_loss, goal: min, trials: 2}"


@pytest.mark.parametrize("wanted", ["train.early_stopping.patience=2", "train.checkpoint.serve_best=true"])
def test_trials_on_several_hosts_have_no_folder_in_common_whatever_is_set(request_of, wanted):
    kept = "train.checkpoint.folder=gs://b/checkpoints"
    with pytest.raises(ConfigError, match=r"the trials of tune keep no checkpoints .* the 4 hosts") as no:
        request_of("train.tpu=v5e-16", TUNE, wanted, kept)
    assert "tune=null" in no.value.hint
    request_of("train.tpu=v5e-16", TUNE)
    request_of("train.tpu=v5e-16", wanted, kept)
    request_of("train.tpu=v5e-8", TUNE, wanted, kept)


@pytest.mark.slow
@pytest.mark.parametrize("name", TPU_SLICES)
def test_service_s_own_types_read_the_request_of_every_slice(request_of, name):
    vertex = pytest.importorskip("google.cloud.aiplatform_v1")
    request = request_of(f"train.tpu={name}", "train.batch_size=1024", "cloud.training.spot=true")
    job = vertex.CustomJob.from_json(json.dumps(request["customJob"]))
    [pool] = job.job_spec.worker_pool_specs
    assert pool.replica_count == 1
    assert pool.machine_spec.machine_type == TPU_SLICES[name].machine["machineType"]
    assert job.job_spec.scheduling.strategy.name == "SPOT"
