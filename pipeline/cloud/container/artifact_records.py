"""Records of the artifacts that later runs look for on Kubeflow Pipelines. Imports TFX.

Kubeflow's resolvers are not implemented, and where it keeps its metadata changes between versions. So each
task writes a record of its outputs beside the artifacts, and the look-up of the next run reads the records.
"""

import json
import posixpath
import shutil
import sys
import time
import uuid
from pathlib import Path

from tfx.dsl.io import fileio
from tfx.utils import io_utils

from slipway.components.store_address import bucket_and_path, is_in_store, speaks_s3
from slipway.components.stored_objects import StoredObjects
from slipway.pipeline.cloud.artifact_query import ArtifactQuery
from slipway.pipeline.cloud.complete_job import title_of
from slipway.pipeline.cloud.container.kubeflow_input import RECORD
from slipway.pipeline.cloud.container.store_errors import told_store_errors
from slipway.pipeline.cloud.executor_input import RuntimeArtifact
from slipway.pipeline.runs.typed_json import DocumentError, typed_text


class ArtifactRecords:
    """The records of one pipeline's artifacts: a folder for each type, with a file for each artifact.

    Args:
        address: a folder, here, on gs://, or on s3:// and minio://, which TFX has no file system for.
        store: a folder that replaces the bucket of artifacts on s3:// and minio://; empty for the real one.

    Raises:
        ComponentError: from all methods, if the store refuses or does not answer.
    """

    def __init__(self, address: str, *, store: str = "") -> None:
        self._address = address.rstrip("/")
        self._store = store

    def keep(self, artifact: RuntimeArtifact) -> None:
        """Add an artifact, which becomes the latest of its type."""
        # The names sort by time; the random part is for two tasks that end at the same moment.
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.json"
        folder = self._folder(title_of(artifact["type"]))
        with told_store_errors(f"no record of {artifact['uri']} can be kept in {folder}"):
            _write(folder, name, json.dumps(artifact))

    def find(self, query: ArtifactQuery) -> RuntimeArtifact | None:
        """Return the latest matching artifact that still exists, with its record's name; None if none does.

        Reports on stderr which records were skipped because the artifact is gone or the record is damaged.
        """
        with told_store_errors(f"the artifacts of earlier runs cannot be looked for in {self._address}"):
            return self._latest(query)

    def _latest(self, query: ArtifactQuery) -> RuntimeArtifact | None:
        titles = [query.title] if query.title else _names(self._address)
        records = [(name, title) for title in titles for name in _names(self._folder(title))]
        for name, title in sorted((each for each in records if each[0].endswith(".json")), reverse=True):
            record = f"{self._folder(title)}/{name}"
            artifact = _read(record)
            if artifact is None or not query.fits(artifact):
                continue
            if self._is_gone(artifact["uri"]):
                _say(f"{record}: its artifact {artifact['uri']} is gone; looking for an earlier one")
                continue
            return {**artifact, "metadata": {**artifact["metadata"], RECORD: record}}
        return None

    def fetch(self, artifact: RuntimeArtifact, folder: Path) -> None:
        """Copy the files of an artifact that was found to a folder of this machine, which exists.

        Raises:
            ComponentError: also if the artifact is removed meanwhile, or the disk is full.
        """
        uri = self._here(artifact["uri"])
        with told_store_errors(f"{artifact['uri']} cannot be copied to {folder}"):
            if speaks_s3(uri):
                StoredObjects(uri).fetch(folder)
            elif is_in_store(uri):
                io_utils.copy_dir(uri, str(folder))
            else:
                shutil.copytree(uri, folder, dirs_exist_ok=True)

    def _is_gone(self, uri: str) -> bool:
        uri = self._here(uri)
        return not (StoredObjects(uri).exist() if speaks_s3(uri) else fileio.exists(uri))

    def _here(self, uri: str) -> str:
        """Return the address of an artifact, or its path in the folder that replaces the bucket."""
        return str(Path(self._store, bucket_and_path(uri)[1])) if self._store and speaks_s3(uri) else uri

    def _folder(self, title: str) -> str:
        return f"{self._address}/{title}"


def _names(folder: str) -> list[str]:
    if speaks_s3(folder):
        return StoredObjects(folder).children()
    if not fileio.exists(folder):
        return []
    return [posixpath.basename(str(name).rstrip("/")) for name in fileio.listdir(folder)]


def _write(folder: str, name: str, text: str) -> None:
    """Write a file atomically: an object in a bucket always is, a local file is by being renamed."""
    if speaks_s3(folder):
        StoredObjects(folder).write(name, text.encode())
        return
    fileio.makedirs(folder)
    part = f"{folder}/{name}" if is_in_store(folder) else f"{folder}/{name}.part"
    with fileio.open(part, "w") as file:
        file.write(text)
    if part != f"{folder}/{name}":
        fileio.rename(part, f"{folder}/{name}")


def _read(record: str) -> RuntimeArtifact | None:
    """Return a record; None if it is damaged."""
    try:
        return typed_text(RuntimeArtifact, _text(record))
    except (DocumentError, UnicodeDecodeError) as error:
        _say(f"{record} is damaged and was skipped: {error}; delete it")
        return None


def _text(record: str) -> str:
    if speaks_s3(record):
        folder, _, name = record.rpartition("/")
        return StoredObjects(folder).read(name).decode()
    with fileio.open(record, "r") as file:
        text: str = file.read()
    return text


def _say(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)
