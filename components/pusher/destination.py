"""Where versions are published to: a directory, or a folder of Cloud Storage."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.pusher.publish import publish
from components.pusher.versions import GS, Published


def push(model_folder: Path, *, base: str, papers: Mapping[str, Any] | None = None) -> Published:
    """Publishes a model to `base`, as `publish` or `publish_to_bucket` says."""
    if base.startswith(GS):
        from components.pusher.publish_to_bucket import publish_to_bucket

        return publish_to_bucket(model_folder, base=base, papers=papers)
    return publish(model_folder, base=Path(base), papers=papers)
