"""The workload file's `notify`: the command and webhook to notify of a run's end."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from slipway.pipeline.config.section import Section, Texts, VariableName
from slipway.pipeline.config.settings_errors import KeyRuleError

End = Literal["complete", "failed", "stopped", "interrupted"]


class NotifyConfig(Section):
    """Notifications at the end of a run."""

    when: Annotated[tuple[End, ...], Field(strict=False, min_length=1)] = Field(
        default=("complete", "failed", "stopped"),
        description="The outcomes to notify about; stopped means by a gate.",
    )
    command: Texts = Field(
        default=(),
        description="Program and arguments, run without a shell; it gets the message as JSON on its input.",
        examples=[["mail-the-team", "--urgent"]],
    )
    webhook_env: VariableName | None = Field(
        default=None,
        description="Name of the environment variable that holds the http(s) address to which the message is "
        "posted as JSON; its `text` is what Slack and others show. The address is never written down.",
        examples=["SLACK_WEBHOOK"],
    )

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if not self.command and self.webhook_env is None:
            raise KeyRuleError("notifies nobody; give command or webhook_env")
        return self
