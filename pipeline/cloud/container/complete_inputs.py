"""Rejects a task on Kubeflow Pipelines whose inputs are gone from the store. Pure, except for reading files.

The launcher downloads whatever is at an address (`DownloadBlob` in
backend/src/v2/objectstore/object_store.go of kubeflow/pipelines). If everything there was removed, e.g. by
a rule of the bucket, it downloads nothing and reports no error, and its cache still returns that address.
An empty artifact looks the same. So each task records how many files it leaves, and the next task counts
what arrived.
"""

from collections.abc import Mapping
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.container.kubeflow_input import FILES, RECORD, local_path
from slipway.pipeline.cloud.executor_input import ExecutorInput, ExecutorOutput, RuntimeArtifact


def record_file_counts(output: ExecutorOutput, given: ExecutorInput, *, place: str = "") -> None:
    """Record in the metadata of each output how many files it has; `output` is changed.

    Args:
        output: as `kubeflow_input.for_launcher` returns it.
        place: see `kubeflow_input.local_path`.
    """
    for key, entry in output.get("artifacts", {}).items():
        # The launcher keeps only the outputs that it requested.
        asked = given["outputs"]["artifacts"].get(key, {"artifacts": []})["artifacts"]
        for artifact, new in zip(asked, entry["artifacts"], strict=False):
            uri = new.get("uri") or artifact["uri"]
            folder = local_path(uri, place=place)
            if folder != uri:
                # A float, because ML Metadata returns every number as a float.
                new["metadata"] = {**new.get("metadata", {}), FILES: float(_files_in(folder))}


def require_complete_inputs(given: ExecutorInput, *, producers: Mapping[str, str], place: str = "") -> None:
    """Reject a task if files of its inputs are missing.

    Args:
        given: the ExecutorInput from the launcher. An artifact without a number of files, such as an
            importer's, passes.
        producers: the task that makes or finds each input, by the input's key.
        place: see `kubeflow_input.local_path`.

    Raises:
        ComponentError: names the input, its producer, and the way to get a new one.
    """
    for key, entry in given.get("inputs", {}).get("artifacts", {}).items():
        for artifact in entry.get("artifacts", ()):
            noted = int(artifact.get("metadata", {}).get(FILES, 0))
            there = _files_in(local_path(artifact["uri"], place=place)) if noted else 0
            if there < noted:
                raise _gone(key, artifact, producers.get(key, "its producer"), noted=noted, there=there)


def _gone(key: str, artifact: RuntimeArtifact, producer: str, *, noted: int, there: int) -> ComponentError:
    record = artifact["metadata"].get(RECORD)
    does = "found it" if record else "made it"
    return ComponentError(
        f"its input {key} is gone from the store: {artifact['uri']} has {there} of its {noted} files; "
        f"{producer} {does}",
        hint=f"delete {record}: the next run finds an earlier one, or none"
        if record
        else f"run {producer} again, past the cache: --set cloud.cache=false, or a new tag in cloud.image",
    )


def _files_in(folder: str) -> int:
    """Return the number of files at a path; 1 if the path is itself a file."""
    path = Path(folder)
    return 1 if path.is_file() else sum(each.is_file() for each in path.rglob("*"))
