"""The workload file's `push`: the destination of blessed models, their signing and their deployment."""

import re
from typing import Self

from pydantic import Field, field_validator, model_validator

from slipway.components.pusher.endpoint import ALL_TRAFFIC
from slipway.pipeline.config.section import (
    BUCKET_WORDS,
    EndpointId,
    PathText,
    Section,
    ServiceAccount,
    Text,
    Texts,
    VariableName,
)
from slipway.pipeline.config.settings_errors import KeyRuleError

_BUCKET_FOLDER = re.compile(r"(?:gs|s3|az)://[a-z0-9][a-z0-9._-]+/[^/].*")
_BAD_PART = re.compile(r"/(?:\.{0,2}/|\.{1,2}$)")


class EndpointConfig(Section):
    """The endpoint of Vertex AI, in the project of `cloud.vertex`, that versions are deployed to."""

    name: EndpointId = Field(
        description="Id of the endpoint; it is created if there is none.", examples=["taxi"]
    )
    container: Text = Field(
        description="Image that serves the SavedModel at AIP_STORAGE_URI, as Vertex AI's prebuilt images for "
        "TensorFlow do.",
        examples=["europe-docker.example/prediction/tf2-cpu:1"],
    )
    machine_type: Text = Field(default="n1-standard-2", description="Machine type that it runs on.")
    min_replicas: int = Field(default=1, ge=1, description="Minimum number of machines.")
    max_replicas: int = Field(default=1, ge=1, description="Maximum number of machines.")
    traffic: int = Field(
        default=ALL_TRAFFIC,
        ge=0,
        le=ALL_TRAFFIC,
        description="Percentage of requests that go to a new version; earlier versions share the rest in the "
        "same proportions. Versions that get none are undeployed.",
    )
    service_account: ServiceAccount | None = Field(
        default=None, description="Account that the image runs as; null: the service's own."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max_replicas < self.min_replicas:
            raise KeyRuleError("must be at least min_replicas", "max_replicas")
        return self


class SignConfig(Section):
    """The private key that versions are signed with; needs the extra `sign`."""

    key: PathText | None = Field(
        default=None,
        description="File of the private key (PEM; curve P-256, P-384 or P-521), relative to the project's "
        "root; keep it out of git and images.",
        examples=["/etc/slipway/signing.pem"],
    )
    key_env: VariableName | None = Field(
        default=None,
        description="Environment variable that holds that file's path, if it differs between machines.",
        examples=["SLIPWAY_SIGNING_KEY"],
    )
    password_env: VariableName | None = Field(
        default=None,
        description="Environment variable that holds the password of the key's file; null: none.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.key is None) == (self.key_env is None):
            raise KeyRuleError("name the private key by exactly one of key and key_env", "key")
        return self


class PushConfig(Section):
    """Where a blessed model goes."""

    destination: PathText | None = Field(
        default=None,
        description="Where versions are published: a directory, relative to the project's root, or "
        "gs://BUCKET/FOLDER, s3://BUCKET/FOLDER or az://CONTAINER/FOLDER; null: serving/NAME in the output "
        "directory.",
    )

    keep: int | None = Field(
        default=None,
        ge=1,
        description="How many of the newest versions to keep there; the live one is always kept. null: all.",
    )

    hook: Texts = Field(
        default=(),
        description="Command and arguments to run after each push, e.g. [curl, -X, POST, URL]; no shell. "
        "SLIPWAY_VERSION, SLIPWAY_VERSION_PATH and SLIPWAY_WORKLOAD say what was pushed.",
    )

    endpoint: EndpointConfig | None = Field(
        default=None,
        description="Endpoint of Vertex AI that each version is deployed to after the push; null: none.",
    )

    sign: SignConfig | None = Field(
        default=None, description="Key that each version is signed with; null: they are not signed."
    )

    verify_key: PathText | None = Field(
        default=None,
        description="File of the public key (PEM), relative to the project's root: `serve`, `predict`, "
        "`compare`, `rollback` and `verify` then take only versions signed with its private key. null: all.",
        examples=["keys/signing.pub"],
    )

    @model_validator(mode="after")
    def _reachable_by_the_service(self) -> Self:
        if self.endpoint is not None and not (self.destination or "").startswith("gs://"):
            raise KeyRuleError(
                "needs push.destination: gs://BUCKET/FOLDER; the service reads versions there", "endpoint"
            )
        return self

    @field_validator("destination")
    @classmethod
    def _directory_or_bucket(cls, value: str | None) -> str | None:
        if value is not None and "://" in value and not _BUCKET_FOLDER.fullmatch(value):
            raise KeyRuleError(f"must be a directory, or gs://BUCKET/FOLDER, s3:// or az://; {BUCKET_WORDS}")
        if value is not None and value.startswith(("s3://", "az://")) and _BAD_PART.search(value[4:]):
            raise KeyRuleError("must not hold '//', '.' or '..' as a part of the path on S3 and Azure")
        return value
