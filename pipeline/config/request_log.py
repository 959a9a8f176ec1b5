"""The workload file's `request_log`: the parts of requests that `serve` and `predict` log."""

from typing import Annotated

from pydantic import Field, field_validator

from slipway.components.request_log.reserved_columns import OWN
from slipway.pipeline.config.section import Column, PathText, Section
from slipway.pipeline.config.settings_errors import KeyRuleError


class RequestLogConfig(Section):
    """A log of requests and answers, in JSON Lines."""

    columns: Annotated[tuple[Column, ...], Field(strict=False, min_length=1)] = Field(
        description="The raw columns to log; no others are logged. Name no secret column.",
        examples=[["fare", "company"]],
    )
    folder: PathText | None = Field(
        default=None,
        description="Folder of the log files, on this machine, relative to the project's root; null: "
        "OUTPUT/requests/NAME.",
    )
    ids: bool = Field(
        default=False,
        description="Also log the header X-Request-Id of each request to serve, as logged_id, by which "
        "labels that arrive later can be joined.",
    )
    share: float = Field(default=1.0, gt=0, le=1, description="Share of the rows to log, drawn at random.")
    max_mb: int = Field(
        default=1024,
        ge=16,
        description="Maximum size of all files in the folder, in MiB; the oldest are removed.",
    )

    @field_validator("columns")
    @classmethod
    def _not_our_own(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        for index, name in enumerate(columns):
            if name in OWN:
                raise KeyRuleError("is a column that the log writes itself; remove it", index)
        return columns
