"""The artifacts that later runs look for at Kubeflow Pipelines, which answers no such question. Imports TFX.

Its resolvers are not implemented, and where its metadata is kept changes between versions. So a task keeps a
record of what it made, beside the artifacts, and the next run's look-up reads the records.
"""

import json
import posixpath
import time
import uuid

from tfx.dsl.io import fileio

from slipway.pipeline.cloud.artifact_query import ArtifactQuery
from slipway.pipeline.cloud.complete_job import title_of
from slipway.pipeline.cloud.execution import RuntimeArtifact


class ArtifactRecords:
    """Records of one pipeline's artifacts: a folder for each type, with a file for each artifact.

    Args:
        address: a folder, here or on gs://.
    """

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")

    def keep(self, artifact: RuntimeArtifact) -> None:
        """Adds an artifact; it is the latest of its type."""
        folder = self._folder(title_of(artifact["type"]))
        fileio.makedirs(folder)
        # In the order of time also by name; two tasks may end in the same moment.
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.json"
        with fileio.open(f"{folder}/{name}", "w") as file:
            file.write(json.dumps(artifact))

    def find(self, query: ArtifactQuery) -> RuntimeArtifact | None:
        """The latest artifact that fits; None if there is none."""
        folder = self._folder(query.title)
        if not fileio.exists(folder):
            return None
        names = (posixpath.basename(str(name).rstrip("/")) for name in fileio.listdir(folder))
        for name in sorted((name for name in names if name.endswith(".json")), reverse=True):
            with fileio.open(f"{folder}/{name}", "r") as file:
                artifact: RuntimeArtifact = json.loads(file.read())
            if query.fits(artifact):
                return artifact
        return None

    def _folder(self, title: str) -> str:
        return f"{self._address}/{title}"
