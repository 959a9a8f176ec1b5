"""Translates a task's inputs and outputs between Kubeflow Pipelines and TFX's entry point. Pure.

Kubeflow's driver and launcher differ from what TFX expects in these points (kubeflow/pipelines,
backend/src/v2):

- The type of an input is `{"instanceSchema": ""}`, because the driver does not know it
  (metadata/client.go). Since ML Metadata was removed, the type is a title that holds the whole schema
  (component/importer_launcher.go). TFX fails on both. Here the type is the one that the component declares.
- An artifact's name is a number, or the output's key, which is not unique. Here the name is the address.
- The launcher downloads inputs to folders of the container, and uploads outputs from there
  (`LocalPathForURI` in component/launcher_v2.go). TFX would write to the store itself, where the launcher
  trips over what TensorFlow leaves there (kubeflow/pipelines issue 13476), or misses the outputs. Here TFX
  gets the folders.
- A task has one output more than its component declares, its log (`provisionOutputs` in driver/driver.go),
  of a type that TFX does not have. Here it is left out.
- Lists and mappings in metadata come back wrapped, but not without ML Metadata; nulls are rejected
  (metadata/converter.go).
"""

import copy
from collections.abc import Mapping
from typing import Any

from slipway.pipeline.cloud.executor_input import ExecutorInput, ExecutorOutput, RuntimeArtifact
from slipway.pipeline.cloud.pipeline_job import ComponentInputsSpec

PLACE_VARIABLE = "ARTIFACT_LOCAL_PATH"
"""The environment variable that names the parent of the launcher's folders; by default, the root."""
STORE_VARIABLE = "ARTIFACT_STORE_PATH"
"""The environment variable that names the folder which replaces the object store in a rehearsal."""
ABSENT = "slipway_absent"
"""The metadata key that marks a missing artifact: an output of Kubeflow Pipelines cannot be left out."""

FILES = "slipway_files"
"""The metadata key for the number of files that the artifact's task left; see `complete_inputs`."""
RECORD = "slipway_record"
"""The metadata key for the record by which an artifact of an earlier run was found."""

LOGS = "executor-logs"
"""The key of the output that the launcher writes itself."""

_FOLDERS = {"gs://": "/gcs/", "s3://": "/s3/", "minio://": "/minio/"}
# Metadata keys that Kubeflow or we set, not a component.
_OTHERS_METADATA = ("display_name", "store_session_info", FILES, RECORD)


def local_path(uri: str, *, place: str = "") -> str:
    """Return the launcher's folder for an artifact; an address of another kind is returned unchanged.

    Args:
        place: the value of `PLACE_VARIABLE`.
    """
    for scheme, folder in _FOLDERS.items():
        if uri.startswith(scheme):
            return f"{place}{folder}{uri.removeprefix(scheme)}"
    return uri


def component_metadata(metadata: Mapping[str, object]) -> dict[str, object]:
    """Return the metadata that a component gave to its artifact, without Kubeflow's and ours."""
    return {name: value for name, value in metadata.items() if name not in _OTHERS_METADATA}


def for_tfx(given: ExecutorInput, declared: ComponentInputsSpec, *, place: str = "") -> ExecutorInput:
    """Return the launcher's ExecutorInput in the form that TFX reads.

    Args:
        given: the ExecutorInput from the launcher, which omits empty parts.
        declared: the component's inputs, with their types.
        place: see `local_path`.
    """
    left = copy.deepcopy(given)
    made: ExecutorInput = {
        "inputs": {"artifacts": {}, "parameterValues": {}, **left.get("inputs", {})},
        "outputs": {"artifacts": {}, "parameters": {}, **left["outputs"]},
    }
    inputs, outputs = made["inputs"], made["outputs"]
    outputs["artifacts"].pop(LOGS, None)
    types = declared.get("artifacts", {})
    places = _places(given, place)
    inputs["artifacts"] = {
        key: entry
        for key, entry in inputs["artifacts"].items()
        if not any(ABSENT in artifact.get("metadata", {}) for artifact in entry.get("artifacts", ()))
    }
    for key, entry in inputs["artifacts"].items():
        for artifact in entry.get("artifacts", ()):
            if key in types:
                artifact["type"] = types[key]["artifactType"]
            artifact["metadata"] = {
                name: _renamed(_unwrapped(value), places)
                for name, value in component_metadata(artifact.get("metadata", {})).items()
            }
            _bring_here(artifact, places)
    for entry in outputs["artifacts"].values():
        for artifact in entry.get("artifacts", ()):
            _bring_here(artifact, places)
    return made


def for_launcher(output: ExecutorOutput, given: ExecutorInput, *, place: str = "") -> ExecutorOutput:
    """Return TFX's ExecutorOutput in the form that the launcher reads.

    Args:
        place: see `local_path`.
    """
    addresses = {path: uri for uri, path in _places(given, place).items()}
    made = copy.deepcopy(output)
    for entry in made.get("artifacts", {}).values():
        for artifact in entry["artifacts"]:
            artifact.pop("name", None)  # type: ignore[typeddict-item]
            if "uri" in artifact:
                artifact["uri"] = addresses.get(artifact["uri"], artifact["uri"])
            artifact["metadata"] = {
                name: _renamed(value, addresses)
                for name, value in artifact.get("metadata", {}).items()
                if value is not None
            }
    return made


def _places(given: ExecutorInput, place: str) -> dict[str, str]:
    """Return the launcher's folder of each artifact that is kept in a store, by the artifact's address."""
    sides: tuple[Mapping[str, Any], ...] = (given.get("inputs", {}), given.get("outputs", {}))
    uris = [
        artifact.get("uri", "")
        for side in sides
        for entry in side.get("artifacts", {}).values()
        for artifact in entry.get("artifacts", ())
    ]
    return {uri: path for uri in uris if (path := local_path(uri, place=place)) != uri}


def _bring_here(artifact: RuntimeArtifact, places: Mapping[str, str]) -> None:
    uri = artifact.get("uri", "")
    artifact["name"], artifact["uri"] = uri, places.get(uri, uri)


def _unwrapped(value: object) -> object:
    match value:
        case {"list": list() as inner, **rest} if not rest:
            return inner
        case {"struct": dict() as inner, **rest} if not rest:
            return inner
    return value


def _renamed(value: object, names: Mapping[str, str]) -> object:
    """Return a value; in a string that begins with one of `names`, that part is replaced."""
    if isinstance(value, str):
        for before, after in names.items():
            if value == before or value.startswith(f"{before}/"):
                return after + value.removeprefix(before)
    return value
