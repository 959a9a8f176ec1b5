"""The workload file's `track`: trackers that runs are sent to, besides the history in the output folder."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from slipway.pipeline.config.section import Section, Text
from slipway.pipeline.config.settings_errors import KeyRuleError


def _server(value: str) -> str:
    # Checked first and anywhere in the text, because even a malformed address may hold a secret.
    if any(letter in value for letter in "@?#"):
        raise KeyRuleError(
            "must hold no user, password, query or fragment: it is written into records; "
            "credentials come from the environment, see docs/tracking.md"
        )
    try:
        parts = urlsplit(value)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or value != value.strip() or any(ord(letter) <= ord(" ") for letter in value):
        raise KeyRuleError(
            "must be the http(s) address of a server, such as http://127.0.0.1:5000; MLflow serves a "
            "folder with mlflow server --backend-store-uri sqlite:///FOLDER/mlflow.db"
        )
    return value.rstrip("/")


ServerAddress = Annotated[Text, AfterValidator(_server)]


class TrackConfig(Section):
    """Trackers to send each run to when it has ended."""

    mlflow: ServerAddress | None = Field(
        default=None,
        description="Address of an MLflow tracking server; null: none.",
        examples=["http://127.0.0.1:5000"],
    )
    experiment: Text | None = Field(
        default=None, description="MLflow's experiment for the runs; null: the workload's name."
    )
    openlineage: ServerAddress | None = Field(
        default=None,
        description="Address of a server that takes OpenLineage events over HTTP; null: none.",
        examples=["http://127.0.0.1:5000"],
    )
    opentelemetry: ServerAddress | None = Field(
        default=None,
        description="Address of an OpenTelemetry collector that takes OTLP over HTTP; null: none.",
        examples=["http://127.0.0.1:4318"],
    )

    @model_validator(mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        return {} if value is None else value  # so that null means none, as in `notify: null`
