"""The workload file's `beam`: the engine of the pipeline's Beam steps."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from slipway.components.in_process_runner import IN_PROCESS
from slipway.pipeline.config.secret_names import names_secret
from slipway.pipeline.config.section import OneOf, Section, SnakeName, Text, Texts
from slipway.pipeline.config.settings_errors import KeyRuleError

RUNNERS = {
    "direct": IN_PROCESS,  # Beam's own default first tries to download another runner
    "prism": "PrismRunner",
    "flink": "FlinkRunner",
    "spark": "SparkRunner",
    "dataflow": "DataflowRunner",
}
"""Names of engines in the workload file -> Beam's names."""
BeamRunner = Annotated[str, OneOf(RUNNERS)]
StockNode = Literal["StatisticsGen", "Transform", "Evaluator"]
BeamOption = Annotated[bool | int | float | Text | Texts, Field(union_mode="left_to_right")]


# The variables from which Beam's own clients take them.
_SECRET_VARIABLES = {
    "s3_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "s3_session_token": "AWS_SESSION_TOKEN",
    "azure_connection_string": "AZURE_STORAGE_CONNECTION_STRING",
}


def secret_option(name: str) -> str:
    """Describe why an option of Beam is not allowed if its value is a secret; empty if it is none."""
    if not names_secret(name):
        return ""
    variable = _SECRET_VARIABLES.get(name)
    remedy = f"export {variable}" if variable else "give it to the engine through its environment"
    return f"is a secret, and options are written into records; {remedy} instead"


class BeamConfig(Section):
    """The engine of the Beam steps: Ingest, StatisticsGen, Transform, Evaluator and predictions."""

    runner: BeamRunner = Field(
        default="direct",
        description="direct: inside each node's process; prism: Beam's own engine for one machine; "
        "flink, spark: on this machine, or where options point to; dataflow: Google's service.",
    )
    options: dict[SnakeName, BeamOption] = Field(
        default={},
        description="Beam's pipeline options by name, without dashes; true sets a flag, a list repeats the "
        "option.",
        examples=[{"parallelism": 4}],
    )
    stock_nodes: list[StockNode] = Field(
        default=[],
        description="Nodes to run with TFX's own executor instead of our faster, equivalent one, to "
        "compare the two.",
        examples=[["Transform", "Evaluator"]],
    )

    @field_validator("options")
    @classmethod
    def _runner_has_its_own_key(cls, options: dict[str, object]) -> dict[str, object]:
        if "runner" in options:
            raise KeyRuleError("is not allowed here; set beam.runner", "runner")
        for name in options:
            if problem := secret_option(name):
                raise KeyRuleError(problem, name)
        return options
