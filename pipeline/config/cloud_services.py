"""The workload file's `cloud.vertex`, `cloud.kubeflow` and `cloud.schedule`: cloud services and schedule."""

from datetime import datetime
from typing import Literal, Self
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from slipway.pipeline.config.cron import cron_problem
from slipway.pipeline.config.secret_names import names_secret
from slipway.pipeline.config.section import (
    EndpointId,
    KmsKey,
    Network,
    Region,
    SecretKey,
    SecretName,
    Section,
    ServiceAccount,
    Text,
    VariableName,
)
from slipway.pipeline.config.settings_errors import KeyRuleError

Service = Literal["vertex", "kubeflow"]
_SECRETS_OVER = "https://"
_LOOPBACK = ("http://127.0.0.1", "http://localhost", "http://[::1]")


def _is_safe_address(address: str) -> bool:
    """Return True if a token sent to this address cannot be read in transit."""
    if address.startswith(_SECRETS_OVER):
        return True
    return any(address == host or address.startswith((f"{host}:", f"{host}/")) for host in _LOOPBACK)


class VertexConfig(Section):
    """Project, region and account for Vertex AI Pipelines."""

    project: Text | None = Field(
        default=None, description="Id of the Google Cloud project.", examples=["my-project"]
    )
    region: Region | None = Field(
        default=None, description="Region that the pipeline runs in.", examples=["europe-west4"]
    )
    service_account: ServiceAccount | None = Field(
        default=None,
        description="Account that the tasks run as; null: the default one of Compute Engine.",
        examples=["pipelines@my-project.iam.gserviceaccount.com"],
    )
    network: Network | None = Field(
        default=None,
        description="Network that the tasks are peered with, named by project number; null: none.",
        examples=["projects/12345/global/networks/my-network"],
    )
    encryption_key: KmsKey | None = Field(
        default=None,
        description="Cloud KMS key, in the same region, for everything that the run stores; null: "
        "Google's keys.",
        examples=["projects/my-project/locations/europe-west4/keyRings/ring/cryptoKeys/key"],
    )
    experiment: EndpointId | None = Field(
        default=None,
        description="Experiment of the service to which each followed run is logged, with its settings "
        "and metrics; null: none. Any name but the workload's.",
        examples=["taxi-trials"],
    )
    endpoint: Text | None = Field(
        default=None,
        description="Address of the API, if not https://REGION-aiplatform.googleapis.com, as with Private "
        "Service Connect.",
    )

    @field_validator("endpoint")
    @classmethod
    def _encrypted(cls, endpoint: str | None) -> str | None:
        if endpoint is not None and not _is_safe_address(endpoint):
            raise KeyRuleError("must begin with https://; tokens are sent there")
        return endpoint


class KubeflowConfig(Section):
    """The installation of Kubeflow Pipelines that runs the pipeline."""

    host: Text | None = Field(
        default=None, description="Address of its API.", examples=["https://kubeflow.example/pipeline"]
    )
    namespace: Text | None = Field(
        default=None, description="Namespace, if the installation has several users; null: a single user."
    )
    experiment: Text = Field(default="slipway", description="Experiment that runs are filed under.")
    service_account: Text | None = Field(
        default=None, description="Kubernetes account that the tasks run as; null: the installation's."
    )
    token_env: VariableName = Field(
        default="KUBEFLOW_TOKEN",
        description="Environment variable that holds a bearer token; none is sent if it is not set.",
    )
    ca_file: Text | None = Field(
        default=None, description="File of CA certificates that verify the address; null: the system's."
    )
    without_baseline: bool = Field(
        default=False,
        description="Whether to run without comparing with the last blessed model and the last passed data; "
        "otherwise they are looked up in records that the tasks keep in cloud.root.",
    )

    variables: dict[VariableName, Text] = Field(
        default={},
        description="Environment variables of the tasks. They are written into the pipeline as they are, so "
        "none may hold a secret.",
        examples=[{"AWS_REGION": "eu-central-1"}],
    )
    secrets: dict[SecretName, dict[VariableName, SecretKey]] = Field(
        default={},
        description="Kubernetes secrets, in the namespace of the runs, that the tasks get as environment "
        "variables: for each secret the variables, each with the key of the secret that holds its value.",
        examples=[
            {
                "mlpipeline-minio-artifact": {
                    "AWS_ACCESS_KEY_ID": "accesskey",
                    "AWS_SECRET_ACCESS_KEY": "secretkey",
                }
            }
        ],
    )

    @field_validator("variables")
    @classmethod
    def _without_secrets(cls, variables: dict[str, str]) -> dict[str, str]:
        for name in variables:
            if names_secret(name):
                raise KeyRuleError(
                    "would be readable in the pipeline; put it into a Kubernetes secret, and name that in "
                    "cloud.kubeflow.secrets",
                    name,
                )
        return variables

    @model_validator(mode="after")
    def _each_variable_once(self) -> Self:
        named = set(self.variables)
        for secret, keys in self.secrets.items():
            if twice := sorted(named.intersection(keys)):
                raise KeyRuleError(
                    "is named twice, here and in another secret or in variables; leave one out",
                    "secrets",
                    secret,
                    twice[0],
                )
            named.update(keys)
        return self

    @field_validator("host")
    @classmethod
    def _encrypted(cls, host: str | None) -> str | None:
        if host is not None and not _is_safe_address(host):
            raise KeyRuleError("must begin with https://, or be on this machine; a token is sent there")
        return host


class ScheduleConfig(Section):
    """When the pipeline runs by itself."""

    cron: Text = Field(
        default="0 3 * * *", description="Minute, hour, day of the month, month, day of the week."
    )
    time_zone: Text = Field(
        default="UTC",
        description="Time zone of cron, by its IANA name; a schedule on Kubeflow has UTC only.",
        examples=["Europe/Berlin"],
    )
    start: Text | None = Field(
        default=None,
        description="No run before this moment, ISO 8601; null: from now.",
        examples=["2027-01-01"],
    )
    end: Text | None = Field(default=None, description="No run after this moment, ISO 8601; null: no end.")
    max_concurrent_runs: int = Field(
        default=1, ge=1, description="Maximum number of concurrent runs of the schedule."
    )
    catch_up: bool = Field(
        default=False, description="Whether to make up for runs that were missed while it was paused."
    )
    lag_days: int | None = Field(
        default=None,
        ge=0,
        le=366,
        description="For a source with {YYYY}, {MM} and {DD}, or {SPAN}: a run takes the span of the day for "
        "which it is scheduled minus this many days; {SPAN} is the number of that day, counted from "
        "1970-01-01. null: the latest span.",
    )

    @field_validator("cron")
    @classmethod
    def _readable(cls, cron: str) -> str:
        if problem := cron_problem(cron):
            raise KeyRuleError(problem)
        return " ".join(cron.split())

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, time_zone: str) -> str:
        try:
            ZoneInfo(time_zone)
        except (KeyError, ValueError, OSError):
            raise KeyRuleError("not a time zone; write it as Europe/Berlin or UTC") from None
        return time_zone

    @field_validator("start", "end")
    @classmethod
    def _moment(cls, moment: str | None) -> str | None:
        if moment is not None:
            try:
                datetime.fromisoformat(moment)
            except ValueError:
                raise KeyRuleError("not a date or time; write it as 2027-01-31 or 2027-01-31T06:00") from None
        return moment

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        start, end = self.starts_at, self.ends_at
        if start is not None and end is not None and end <= start:
            raise KeyRuleError("must be after start", "end")
        return self

    @property
    def starts_at(self) -> datetime | None:
        """The time of `start`; in `time_zone` if it names no offset."""
        return self._at(self.start)

    @property
    def ends_at(self) -> datetime | None:
        """The time of `end`; in `time_zone` if it names no offset."""
        return self._at(self.end)

    def _at(self, moment: str | None) -> datetime | None:
        if moment is None:
            return None
        at = datetime.fromisoformat(moment)
        return at if at.tzinfo else at.replace(tzinfo=ZoneInfo(self.time_zone))
