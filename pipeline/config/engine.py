"""The workload file's `nodes` and `metadata`: retries, time limits, and the metadata database."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from slipway.pipeline.config.section import OneOf, Section, Text, VariableName, drop_schema_default

DEFAULT_PORTS = {"postgresql": 5432, "mysql": 3306}


class NodeConfig(Section):
    """Retries and time limits of one node."""

    retries: int = Field(default=0, ge=0, description="How often to retry the node after a failure.")
    timeout_s: float | None = Field(
        default=None, gt=0, description="Seconds after which the node is stopped; null: no limit."
    )
    backoff_s: float = Field(default=1.0, ge=0, description="Seconds to wait before retrying the node.")


class MetadataConfig(Section):
    """The database server for ML Metadata."""

    type: Annotated[str, OneOf(DEFAULT_PORTS)] = Field(
        description="Kind of database.", examples=["postgresql"]
    )
    host: Text = Field(default="localhost", description="Host name or address of the server.")
    port: int = Field(
        default=0,
        ge=1,
        le=65535,
        description="Port of the server; "
        f"{' and '.join(f'{port} for {name}' for name, port in DEFAULT_PORTS.items())} where not given.",
        json_schema_extra=drop_schema_default,
    )
    database: Text = Field(description="Name of the database; it must exist.", examples=["mlmd"])
    user: Text = Field(description="User that may create tables there.", examples=["slipway"])
    password_env: VariableName | None = Field(
        default=None,
        description="Name of the environment variable that holds the password; null: no password.",
    )

    @model_validator(mode="before")
    @classmethod
    def _usual_port(cls, data: Any) -> Any:
        if isinstance(data, dict) and "port" not in data and str(data.get("type")) in DEFAULT_PORTS:
            return {**data, "port": DEFAULT_PORTS[data["type"]]}
        return data
