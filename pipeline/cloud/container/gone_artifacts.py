"""Refuses a task on Kubeflow Pipelines whose inputs are gone from the store. Pure, but for the files.

Its launcher brings what lies at an address (`DownloadBlob` in backend/src/v2/objectstore/object_store.go of
kubeflow/pipelines). Where everything was removed, as by a rule of the bucket, it brings nothing and says
nothing, and its cache still answers with that address. An empty artifact looks the same. So each task notes
how many files it leaves, and the next one counts what arrived.
"""

from collections.abc import Mapping
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.container.kubeflow_input import FILES, RECORD, local_path
from slipway.pipeline.cloud.execution import ExecutorInput, ExecutorOutput, RuntimeArtifact


def note_files(output: ExecutorOutput, given: ExecutorInput, *, place: str = "") -> None:
    """Notes in the metadata of each output how many files it has; `output` is changed.

    Args:
        output: as `kubeflow_input.for_launcher` gives it.
        given: what the launcher gave the task.
        place: see `kubeflow_input.local_path`.
    """
    for key, entry in output.get("artifacts", {}).items():
        # What the launcher has not asked for it does not keep.
        asked = given["outputs"]["artifacts"].get(key, {"artifacts": []})["artifacts"]
        for artifact, new in zip(asked, entry["artifacts"], strict=False):
            uri = new.get("uri") or artifact["uri"]
            folder = local_path(uri, place=place)
            if folder != uri:
                # A float: ML Metadata gives any number back as one.
                new["metadata"] = {**new.get("metadata", {}), FILES: float(_files_in(folder))}


def refuse_gone(given: ExecutorInput, *, producers: Mapping[str, str], place: str = "") -> None:
    """Refuses a task of whose inputs files are missing.

    Args:
        given: what the launcher gives the task. An artifact without a note, such as an importer's, passes.
        producers: the task that makes or finds an input, by the input's key.
        place: see `kubeflow_input.local_path`.

    Raises:
        ComponentError: names the input, its producer, and how there will be another one.
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
    """How many files are at that path: one where it is itself a file."""
    path = Path(folder)
    return 1 if path.is_file() else sum(each.is_file() for each in path.rglob("*"))
