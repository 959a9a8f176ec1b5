"""Builds the request for a training job on Vertex AI's TPUs from the workload file.

The Trainer's task does the same as elsewhere: it prepares the training and exports the model. But its
training process is replaced by a CustomJob, which the task sends when it runs
(slipway.components.trainer.remote). So the job's machines need Keras, its backend and the files, but not
TFX.
"""

import math

from slipway.components.errors import ComponentError
from slipway.components.trainer.device_rules import require_agreeing_hosts
from slipway.components.trainer.job import CustomJobRequest
from slipway.pipeline.cloud.required_settings import needed_by_vertex, require
from slipway.pipeline.cloud.trainable import require_trainable
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.errors import ConfigError, raised_as
from slipway.pipeline.terminal.invocation import image_command
from slipway.pipeline.wiring.vertex_tpu_slices import IMAGE_TARGETS, TpuSlice, tpu_slice

WORKER = ("python", "-m", "slipway.components.trainer.remote.worker")


def training_job(config: WorkloadConfig) -> CustomJobRequest | None:
    """Return the training job; None if the Trainer's task trains itself.

    `slipway.components.trainer.remote.vertex.VertexTraining` sends the job.

    Args:
        config: the workload; `cloud.root` is set, and `train.checkpoint.folder` as the run will have it.

    Raises:
        ConfigError: `train.tpu` and `train.backend` do not fit together, the training would refuse its
            settings on the slice, or `cloud.vertex.project`, `cloud.vertex.region` or the image is missing.
    """
    if config.train.device != "tpu":
        return None
    vertex = config.cloud.vertex
    tpu = tpu_slice(config.train.tpu, backend=config.train.backend)
    require_trainable(config.train, kind="tpu", devices=tpu.devices, hosts=tpu.hosts, where=tpu.name)
    _require_trials(config, tpu)
    require(needed_by_vertex(vertex), who="a training job on TPUs", profiles=config.profiles)
    job: dict[str, object] = {
        "displayName": f"{config.name}-training",
        "labels": {**config.cloud.labels, "slipway_workload": config.name},
        "jobSpec": _job_spec(config, tpu),
    }
    if vertex.encryption_key:
        job["encryptionSpec"] = {"kmsKeyName": vertex.encryption_key}
    return {
        "project": str(vertex.project),
        "region": str(vertex.region),
        "endpoint": vertex.endpoint or f"https://{vertex.region}-aiplatform.googleapis.com",
        "customJob": job,
    }


def _require_trials(config: WorkloadConfig, tpu: TpuSlice) -> None:
    """Reject a search whose trials would be refused: each has its checkpoints on its own machine only."""
    is_best_wanted = config.tune is not None and config.train.serves_best
    with raised_as(ConfigError, ComponentError):
        require_agreeing_hosts(tpu.hosts, blow_up=config.train.blow_up, has_best_of_trials=is_best_wanted)


def _job_spec(config: WorkloadConfig, tpu: TpuSlice) -> dict[str, object]:
    vertex = config.cloud.vertex
    limit_s = config.nodes["Trainer"].timeout_s if "Trainer" in config.nodes else None
    scheduling: dict[str, object] = {"strategy": "SPOT" if config.cloud.training.spot else "STANDARD"}
    if tpu.hosts > 1:
        # The hosts compute each step together: one that restarts alone would wait for the others' old step.
        scheduling["restartJobOnWorkerRestart"] = True
    if limit_s:
        scheduling["timeout"] = f"{math.ceil(limit_s)}s"
    spec: dict[str, object] = {
        "workerPoolSpecs": [
            {
                "machineSpec": tpu.machine,
                "replicaCount": "1",  # a slice is one replica, however many hosts it has
                "containerSpec": {
                    "imageUri": _image(config),
                    "command": list(WORKER),
                    # Overrides the image's own value, the backend with which models are exported.
                    "env": [{"name": "KERAS_BACKEND", "value": config.train.backend}],
                },
            }
        ],
        "scheduling": scheduling,
    }
    if vertex.service_account:
        spec["serviceAccount"] = vertex.service_account
    if vertex.network:
        spec["network"] = vertex.network
    return spec


def _image(config: WorkloadConfig) -> str:
    if config.cloud.training.image:
        return config.cloud.training.image
    target = IMAGE_TARGETS[config.train.backend]
    suffix, image = target.removeprefix("training"), config.cloud.image or ""
    if "@" in image or ":" not in image.rpartition("/")[2]:
        raise ConfigError(
            f"cloud.training.image is not set, and cloud.image ({image}) has no tag to append {suffix} to",
            hint=f"name what `{image_command(target=target)}` built: --set cloud.training.image=...",
        )
    return f"{image}{suffix}"
