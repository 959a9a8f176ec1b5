"""The workload file's `push`: where a blessed model goes."""

import re

from pydantic import Field, field_validator

from pipeline.config.problems import KeyRuleError
from pipeline.config.section import Section, Text

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

    @field_validator("destination")
    @classmethod
    def _directory_or_bucket(cls, value: str | None) -> str | None:
        if value is not None and "://" in value and not _BUCKET_FOLDER.fullmatch(value):
            raise KeyRuleError("must be a directory or gs://BUCKET/FOLDER")
        return value
