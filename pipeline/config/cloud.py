"""The workload file's `cloud`: the place where the pipeline runs in the cloud, and its tasks' resources."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from slipway.components.store_address import AZ, GS, speaks_s3
from slipway.pipeline.config.cloud_services import KubeflowConfig, ScheduleConfig, Service, VertexConfig
from slipway.pipeline.config.secret_names import is_secret
from slipway.pipeline.config.section import DottedPath, LabelValue, Name, NodeId, RootPath, Section, Text
from slipway.pipeline.config.settings_errors import KeyRuleError

Cores = Annotated[float, Field(gt=0, le=1024)]
Gigabytes = Annotated[float, Field(gt=0, le=65536)]


class ResourcesConfig(Section):
    """Resources of one task's container; null: as `cloud.resources` says for all."""

    cpu: Cores | None = Field(default=None, description="Cores of a task's container.")
    memory_gb: Gigabytes | None = Field(
        default=None, description="Memory of a task's container in gigabytes (10^9 bytes)."
    )
    accelerator: Text | None = Field(
        default=None,
        description="Accelerator of a task's container, by the service's name; null: none.",
        examples=["NVIDIA_TESLA_T4"],
    )
    accelerator_count: int = Field(default=1, ge=1, description="How many accelerators, if one is named.")


class TrainingConfig(Section):
    """The machines of a training on TPUs (train.device: tpu), apart from the Trainer's container."""

    image: Text | None = Field(
        default=None,
        description="Container image for them; null: cloud.image with -tpu or -tpu-tensorflow appended.",
    )
    spot: bool = Field(
        default=False,
        description="Whether to use cheaper machines that may be reclaimed at any time; the training "
        "then continues from its newest checkpoint.",
    )


class CloudConfig(Section):
    """Where the pipeline runs in the cloud, and the resources of its tasks."""

    image: Text | None = Field(
        default=None,
        description="Container image that the tasks run in, built with `make image` and pushed.",
        examples=["europe-docker.example/project/repository/slipway:1.0"],
    )
    root: RootPath | None = Field(
        default=None,
        description="Folder for the artifacts of cloud runs: gs://BUCKET/PATH, on Kubeflow also s3:// or "
        "minio://BUCKET/PATH.",
        examples=["gs://bucket/pipelines"],
    )
    cache: bool = Field(
        default=False,
        description="Whether the service may reuse the result of an equal task of an earlier run. It "
        "identifies the code by the image's name only, so the image needs a unique tag or a digest.",
    )
    labels: dict[Name, LabelValue] = Field(
        default={}, max_length=32, description="Labels of the run, by which to find it and its costs."
    )
    resources: ResourcesConfig = Field(
        default=ResourcesConfig(cpu=4, memory_gb=16), description="Resources of each task's container."
    )
    tasks: dict[NodeId, ResourcesConfig] = Field(
        default={}, description="Resources for single tasks, for example {Trainer: {memory_gb: 32}}."
    )

    service: Service = Field(default="vertex", description="The service that runs the pipeline.")
    vertex: VertexConfig = Field(
        default=VertexConfig(), description="Project, region and account for Vertex AI Pipelines."
    )
    kubeflow: KubeflowConfig = Field(
        default=KubeflowConfig(), description="The installation of Kubeflow Pipelines that runs the pipeline."
    )
    failure_policy: Literal["slow", "fast"] = Field(
        default="slow",
        description="After a failure: slow continues with tasks that do not depend on it, fast starts no "
        "more tasks.",
    )
    parameters: dict[Text, str | int | float | bool] = Field(
        default={}, description="Values of the pipeline's runtime parameters, if it has any."
    )
    schedule: ScheduleConfig = Field(
        default=ScheduleConfig(), description="When the pipeline runs automatically, after `schedule create`."
    )
    exit_handler: DottedPath | None = Field(
        default=None,
        description="Dotted path of a function that returns a component made with TFX's exit_handler, which "
        "runs at the end, whatever happened to the tasks; null: none.",
        examples=["workloads.taxi.notify.tell"],
    )
    training: TrainingConfig = Field(default=TrainingConfig(), description="Machines that train on TPUs.")

    @field_validator("parameters")
    @classmethod
    def _without_secrets(
        cls, parameters: dict[str, str | int | float | bool]
    ) -> dict[str, str | int | float | bool]:
        for name, value in parameters.items():
            if is_secret(name, value):
                raise KeyRuleError(
                    "would be readable in the service; let the component read an environment variable or a "
                    "secret manager, and give the parameter the name of that",
                    name,
                )
        return parameters

    @field_validator("root", mode="before")
    @classmethod
    def _kept_by_a_service(cls, root: object) -> object:
        # Kubeflow's launcher takes gs, s3 and minio only (kubeflow/pipelines, objectstore/config.go).
        if isinstance(root, str) and root.startswith(AZ):
            raise KeyRuleError(
                "must not be on az://, where neither Vertex AI nor Kubeflow keeps artifacts; name gs://, or "
                "on Kubeflow s3:// or minio://BUCKET/PATH, such as the store that it was installed with. "
                "There, data.source, push.destination and train.checkpoint.folder may be on az://"
            )
        return root

    @model_validator(mode="after")
    def _root_is_within_reach(self) -> Self:
        if self.root is None:
            return self
        if self.service == "vertex" and not self.root.startswith(GS):
            raise KeyRuleError(
                "must be gs://BUCKET/PATH, the only place where Vertex AI keeps artifacts; s3:// and "
                "minio:// are for cloud.service: kubeflow",
                "root",
            )
        if speaks_s3(self.root) and "?" in self.root:
            raise KeyRuleError(
                "must not hold a ?: region and endpoint of a store are named in the ConfigMap kfp-launcher, "
                "and for the tasks in cloud.kubeflow.variables",
                "root",
            )
        return self

    @model_validator(mode="after")
    def _cache_knows_the_code(self) -> Self:
        if self.cache and self.image is not None and not _names_content(self.image):
            raise KeyRuleError(
                "would take results of older code, because the image's name stays the same when its content "
                "changes; name a tag other than latest, or a digest, in cloud.image",
                "cache",
            )
        return self


def _names_content(image: str) -> bool:
    if "@sha256:" in image:
        return True
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return bool(colon) and tag not in ("", "latest")
