"""The artifacts that later runs look for on Kubeflow Pipelines, which answers no such question. Imports TFX.

Its resolvers are not implemented, and where its metadata is kept changes between versions. So a task keeps a
record of what it made, beside the artifacts, and the next run's look-up reads the records.
"""

import json
import posixpath
import sys
import time
import uuid

from tfx.dsl.io import fileio

from slipway.pipeline.cloud.artifact_query import ArtifactQuery
from slipway.pipeline.cloud.complete_job import title_of
from slipway.pipeline.cloud.container.kubeflow_input import RECORD
from slipway.pipeline.cloud.execution import RuntimeArtifact
from slipway.pipeline.runs.typed_json import DocumentError, typed_text


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
        # Whole or not at all: an object of a bucket is so anyway, a file once it has its name.
        part = f"{folder}/{name}" if _is_in_store(folder) else f"{folder}/{name}.part"
        with fileio.open(part, "w") as file:
            file.write(json.dumps(artifact))
        if part != f"{folder}/{name}":
            fileio.rename(part, f"{folder}/{name}")

    def find(self, query: ArtifactQuery) -> RuntimeArtifact | None:
        """The latest artifact that fits and is still there, its record named in it; None if there is none.

        Says on stderr which records it passed over: of an artifact that was removed, or damaged.
        """
        titles = [query.title] if query.title else _names(self._address)
        records = [(name, title) for title in titles for name in _names(self._folder(title))]
        for name, title in sorted((each for each in records if each[0].endswith(".json")), reverse=True):
            record = f"{self._folder(title)}/{name}"
            artifact = _read(record)
            if artifact is None or not query.fits(artifact):
                continue
            if _is_gone(artifact["uri"]):
                _say(f"{record}: its artifact {artifact['uri']} is gone; looking for an earlier one")
                continue
            return {**artifact, "metadata": {**artifact["metadata"], RECORD: record}}
        return None

    def _folder(self, title: str) -> str:
        return f"{self._address}/{title}"


def _names(folder: str) -> list[str]:
    if not fileio.exists(folder):
        return []
    return [posixpath.basename(str(name).rstrip("/")) for name in fileio.listdir(folder)]


def _read(record: str) -> RuntimeArtifact | None:
    """A record; None if it is damaged."""
    try:
        with fileio.open(record, "r") as file:
            return typed_text(RuntimeArtifact, file.read())
    except (DocumentError, UnicodeDecodeError) as error:
        _say(f"{record} is damaged and was skipped: {error}; delete it")
        return None


def _is_gone(uri: str) -> bool:
    # Other stores, such as minio://, only the service's launcher reads: what lies there counts as there.
    return (not _is_in_store(uri) or uri.startswith("gs://")) and not fileio.exists(uri)


def _is_in_store(address: str) -> bool:
    return "://" in address


def _say(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)
