"""The workload file's `push`: where a blessed model goes."""

import re

from pydantic import Field, field_validator

from pipeline.config.problems import KeyRuleError
from pipeline.config.section import Section, Text, Texts

_BUCKET_FOLDER = re.compile(r"gs://[a-z0-9][a-z0-9._-]+/[^/].*")


class PushConfig(Section):
    """Where a blessed model goes."""

    destination: Text | None = Field(
        default=None,
        description="What receives the versions: a directory, relative to the project's root, or "
        "gs://BUCKET/FOLDER; null: serving/NAME in the output directory.",
    )

    keep: int | None = Field(
        default=None,
        ge=1,
        description="How many versions stay there, the newest ones; the one that is served always does. "
        "null: all.",
    )

    hook: Texts = Field(
        default=(),
        description="Command and arguments to run after each push, e.g. [curl, -X, POST, URL]; no shell. "
        "SLIPWAY_VERSION, SLIPWAY_VERSION_PATH and SLIPWAY_WORKLOAD say what was pushed.",
    )

    @field_validator("destination")
    @classmethod
    def _directory_or_bucket(cls, value: str | None) -> str | None:
        if value is not None and "://" in value and not _BUCKET_FOLDER.fullmatch(value):
            raise KeyRuleError("must be a directory or gs://BUCKET/FOLDER")
        return value
