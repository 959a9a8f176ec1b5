"""The workload file's `push`: where a blessed model goes."""

from pydantic import Field

from pipeline.config.section import Section, Text


class PushConfig(Section):
    """Where a blessed model goes."""

    destination: Text | None = Field(
        default=None,
        description="Directory that receives the versions, relative to the project's root; "
        "null: serving/NAME in the output directory.",
    )
