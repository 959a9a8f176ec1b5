"""Imitates how Kubeflow Pipelines runs a task: its driver's inputs, and its launcher's downloads and uploads.

Modelled on kubeflow/pipelines, backend/src/v2: driver/driver.go (`provisionOutputs`), driver/resolve.go,
driver/cache.go, cacheutils/cache.go, component/launcher_v2.go, objectstore/config.go (`KeyFromURI`),
metadata/client.go, metadata/converter.go of 2.17.0, component/importer_launcher.go of master at 7b70c7b;
without ML Metadata: driver/container.go, cacheutils/cache.go, component/launcher_v2.go of its branch
mlmd-removal at e2520ff. The object store is a folder, or a real one with S3's API.
"""

import hashlib
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from slipway.components.errors import ComponentError
from slipway.components.store_address import GS, speaks_s3
from slipway.components.stored_objects import StoredObjects
from slipway.pipeline.cloud.complete_job import component_of, title_of
from slipway.pipeline.cloud.container.kubeflow_input import LOGS, PLACE_VARIABLE, STORE_VARIABLE, local_path
from slipway.pipeline.cloud.executor_input import (
    ExecutorInput,
    ExecutorOutput,
    RuntimeArtifact,
    TaskOutputs,
    executor_input,
)
from slipway.pipeline.cloud.pipeline_job import (
    ArtifactTypeSchema,
    ComponentSpec,
    ImporterSpec,
    PipelineContainerSpec,
    PipelineSpec,
)
from slipway.pipeline.cloud.rehearsal.services import Service
from slipway.pipeline.cloud.rehearsal.tasks import Files

BUCKET = "minio://rehearsal"
"""The address of the object store, which no code in a container can reach."""

_OUTPUT_FILE = "output_metadata.json"
_PARAMETERS = "/tmp/kfp/outputs"  # noqa: S108  (of a container)
_KINDS: Mapping[str, tuple[type, ...]] = {
    "NUMBER_INTEGER": (int, float),
    "NUMBER_DOUBLE": (int, float),
    "BOOLEAN": (bool,),
    "LIST": (list,),
    "STRUCT": (dict,),
}


class ObjectStore:
    """The object store.

    Args:
        folder: the folder that replaces the bucket.
        others: the files at other addresses, such as on gs://.
    """

    def __init__(self, folder: Path, *, others: Files) -> None:
        self.folder = folder
        """The folder that replaces the bucket."""
        self._others = others

    def exists(self, address: str) -> bool:
        """Return True if there is any object below an address."""
        return self._at(address).exists() if _is_ours(address) else self._others.exists(address)

    def take(self, address: str) -> str | None:
        """Return the text of an object, and remove it; None if there is none."""
        if not _is_ours(address):
            return self._others.take(address)
        path = self._at(address)
        if not path.is_file():
            return None
        text = path.read_text(encoding="utf-8")
        path.unlink()
        return text

    def fetch(self, address: str, folder: Path) -> None:
        """Copy all objects below an address; do nothing if there are none."""
        if not _is_ours(address):
            self._others.fetch(address, folder)
        elif self._at(address).exists():
            shutil.copytree(self._at(address), folder, dirs_exist_ok=True)

    def put(self, folder: Path, address: str) -> None:
        """Upload the files of a folder; an object store has no empty folders."""
        for path in folder.rglob("*"):
            if path.is_file():
                target = self._at(address) / path.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)

    def _at(self, address: str) -> Path:
        return self.folder / address.removeprefix(f"{BUCKET}/")


class RemoteStore:
    """The stores at s3:// and minio:// themselves, in the place of `ObjectStore`.

    Args:
        others: the files at other addresses, such as on gs://.
    """

    def __init__(self, *, others: Files) -> None:
        self._others = others

    def exists(self, address: str) -> bool:
        """Return True if there is any object below an address."""
        return StoredObjects(address).exist() if speaks_s3(address) else self._others.exists(address)

    def take(self, address: str) -> str | None:
        """Return the text of an object, and remove it; None if there is none."""
        if not speaks_s3(address):
            return self._others.take(address)
        folder, _, name = address.rpartition("/")
        objects = StoredObjects(folder)
        try:
            text = objects.read(name).decode()
        except FileNotFoundError:
            return None
        objects.remove(name)
        return text

    def fetch(self, address: str, folder: Path) -> None:
        """Copy all objects below an address; do nothing if there are none."""
        if speaks_s3(address):
            StoredObjects(address).fetch(folder)
        else:
            self._others.fetch(address, folder)

    def put(self, folder: Path, address: str) -> None:
        """Upload the files of a folder; an object store has no empty folders."""
        StoredObjects(address).put(folder)


class Kubeflow(Service):
    """Kubeflow Pipelines, as a service of rehearsals.

    Args:
        with_mlmd: whether metadata is kept in ML Metadata.
        place: the parent of the launcher's folders; None means a new temporary folder for each task.
    """

    def __init__(
        self, store: ObjectStore | RemoteStore, *, with_mlmd: bool, place: str | None = None
    ) -> None:
        self._store = store
        self._with_mlmd = with_mlmd
        self._place = place

    def artifact_namespace(self, pipeline: str) -> str:
        """Return the name under which a pipeline's artifacts are kept; ML Metadata makes no difference."""
        return f"{pipeline} on Kubeflow"

    def inputs(
        self,
        spec: PipelineSpec,
        name: str,
        *,
        done: Mapping[str, TaskOutputs],
        parameters: Mapping[str, object],
        folder: str,
    ) -> ExecutorInput:
        """Return the ExecutorInput that the driver gives a task.

        Raises:
            ComponentError: a parameter is missing, or of another type than the component declares.
        """
        # Chosen before the container runs, because `{{$}}` names the output file, which is in this folder.
        if self._place is None:
            self._place = f"{tempfile.gettempdir()}/container-{uuid.uuid4()}"
        folder = f"{folder}/{uuid.uuid4()}"
        given = executor_input(spec, name, done=done, parameters=parameters, folder=folder)
        declared = component_of(spec, name).get("inputDefinitions", {}).get("parameters", {})
        values = given["inputs"]["parameterValues"]
        for key, parameter in declared.items():
            if key in values:
                values[key] = _checked(name, key, values[key], parameter.get("parameterType", "STRING"))
            elif not parameter.get("isOptional") and "defaultValue" not in parameter:
                raise ComponentError(f"{name} gets no value for its parameter {key!r}, which has no default")
        for entry in given["inputs"]["artifacts"].values():
            entry["artifacts"] = [self._sent(artifact) for artifact in entry["artifacts"]]
        for key, entry in given["outputs"]["artifacts"].items():
            for artifact in entry["artifacts"]:
                artifact["name"] = key
        logs: RuntimeArtifact = {
            "name": LOGS,
            "uri": f"{folder}/{LOGS}",
            "type": {"schemaTitle": "system.Artifact"},
            "metadata": {},
        }
        given["outputs"]["artifacts"][LOGS] = {"artifacts": [logs]}
        for key, parameter_file in given["outputs"]["parameters"].items():
            parameter_file["outputFile"] = f"{self._place}{_PARAMETERS}/{key}"
        given["outputs"]["outputFile"] = f"{local_path(folder, place=self._place)}/{_OUTPUT_FILE}"
        return given

    def _sent(self, recorded: RuntimeArtifact) -> RuntimeArtifact:
        """Return an artifact as the driver sends it to later tasks."""
        if self._with_mlmd:
            return {
                "name": recorded["artifactId"],
                "uri": recorded["uri"],
                "type": {"instanceSchema": ""},
                "metadata": {
                    "display_name": recorded["name"],
                    "store_session_info": "{}",
                    **{key: _through_mlmd(value) for key, value in recorded["metadata"].items()},
                },
            }
        return {**recorded, "type": {"schemaTitle": _title_without_mlmd(recorded["type"])}}

    def cache_key(
        self, component: ComponentSpec, container: PipelineContainerSpec, given: ExecutorInput
    ) -> str:
        """Return the key by which the driver finds an equal task, without its name and output addresses."""
        outputs = component.get("outputDefinitions", {}).get("parameters", {})
        parts = {
            "inputArtifactNames": {
                key: [artifact.get("artifactId") or artifact["name"] for artifact in entry["artifacts"]]
                for key, entry in given["inputs"]["artifacts"].items()
            },
            "inputParameterValues": given["inputs"]["parameterValues"],
            "outputArtifactsSpec": {
                key: {part: artifact.get(part) for part in ("name", "type", "metadata")}
                for key, entry in given["outputs"]["artifacts"].items()
                for artifact in entry["artifacts"][:1]
            },
            "outputParametersSpec": {key: outputs[key].get("parameterType") for key in outputs},
            "image": container.get("image"),
            "cmdArgs": [*container.get("command", ()), *container.get("args", ())],
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def imported(
        self, given: ExecutorInput, uri: str, importer: ImporterSpec
    ) -> dict[str, list[RuntimeArtifact]]:
        """Return the artifact at that address, the same one each time unless `reimport` is set.

        Raises:
            ComponentError: the launcher would find nothing there.
        """
        if not uri.startswith((f"{BUCKET}/", GS)):
            raise ComponentError(
                f"Kubeflow imports from an object store, and a rehearsal reaches gs:// only: {uri}"
            )
        if not self._store.exists(uri):
            raise ComponentError(f"there is nothing at {uri}, which is to be imported")
        known = str(int.from_bytes(hashlib.sha256(uri.encode()).digest()[:7]))
        artifact_id = str(time.time_ns()) if importer.get("reimport") else known
        made = {key: entry["artifacts"] for key, entry in given["outputs"]["artifacts"].items()}
        made.pop(LOGS)  # only a container has logs
        for artifacts in made.values():
            for artifact in artifacts:
                artifact["uri"], artifact["artifactId"] = uri, artifact_id
                artifact["metadata"] = dict(importer.get("metadata", {}))
        return made

    def prepare_task(self, given: ExecutorInput) -> None:
        """Download the inputs to the container's folders, and create the parent folders of the outputs."""
        os.environ[PLACE_VARIABLE] = str(self._place)
        # The bucket's own address leads nowhere; only what looks for earlier artifacts asks for it.
        os.environ[STORE_VARIABLE] = str(self._store.folder) if isinstance(self._store, ObjectStore) else ""
        # Private, because other users use the temporary folder, too.
        Path(str(self._place)).mkdir(mode=0o700, parents=True, exist_ok=True)
        for entry in given["inputs"]["artifacts"].values():
            for artifact in entry["artifacts"]:
                self._store.fetch(artifact["uri"], self._here(artifact))
        for entry in given["outputs"]["artifacts"].values():
            for artifact in entry["artifacts"]:
                self._here(artifact).parent.mkdir(parents=True, exist_ok=True)
        for parameter in given["outputs"]["parameters"].values():
            Path(parameter["outputFile"]).parent.mkdir(parents=True, exist_ok=True)

    def collect_outputs(
        self, given: ExecutorInput, output: ExecutorOutput
    ) -> dict[str, list[RuntimeArtifact]]:
        """Upload the outputs.

        Raises:
            ComponentError: the launcher would fail because of the output file, or an output that is missing
                or at an address of another run.
        """
        made = {}
        for key, entry in given["outputs"]["artifacts"].items():
            changed = output.get("artifacts", {}).get(key, {"artifacts": []})["artifacts"]
            for artifact, new in zip(entry["artifacts"], changed, strict=False):
                of_the_run = artifact["uri"].rsplit("/", 3)[0]  # the parent of the tasks' folders
                artifact["uri"] = new.get("uri") or artifact["uri"]
                if self._with_mlmd and not artifact["uri"].startswith(f"{of_the_run}/"):
                    raise ComponentError(
                        f"Kubeflow's launcher refuses the output {key}: {artifact['uri']} is not below the "
                        f"run's folder {of_the_run}"
                    )
                artifact["metadata"] = {**artifact["metadata"], **new.get("metadata", {})}
            if key != LOGS:  # the engine keeps the logs
                for artifact in entry["artifacts"]:
                    self._take(key, artifact)
                made[key] = entry["artifacts"]
        return made

    def clean_up(self) -> None:
        """Remove the container's folders with the downloaded inputs."""
        shutil.rmtree(str(self._place), ignore_errors=True)

    def _take(self, key: str, artifact: RuntimeArtifact) -> None:
        if self._with_mlmd and (nulls := [name for name, it in artifact["metadata"].items() if it is None]):
            raise ComponentError(f"Kubeflow's launcher refuses nulls in metadata: {key}.{', '.join(nulls)}")
        here = self._here(artifact)
        if here.exists():
            self._store.put(here, artifact["uri"])
        elif not self._with_mlmd:
            raise ComponentError(f"Kubeflow's launcher misses the output {key} at {here}")
        artifact["artifactId"] = str(time.time_ns())

    def _here(self, artifact: RuntimeArtifact) -> Path:
        return Path(local_path(artifact["uri"], place=str(self._place)))


def _is_ours(address: str) -> bool:
    return address.startswith(f"{BUCKET}/")


def _checked(name: str, key: str, value: object, kind: str) -> object:
    """Return a parameter's value as the driver passes it on: any value becomes text where text is declared.

    Raises:
        ComponentError: the value does not have the declared type; the driver converts nothing else.
    """
    if kind == "STRING":
        return value if isinstance(value, str) else _text(value)
    if kind in _KINDS and (
        not isinstance(value, _KINDS[kind]) or (kind.startswith("NUMBER") and isinstance(value, bool))
    ):
        raise ComponentError(f"{name}.{key} is a {kind}, and its value {value!r} is not")
    return value


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)


def _through_mlmd(value: object) -> object:
    """Return a metadata value as ML Metadata returns it."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return {"list": value}
    return {"struct": value} if isinstance(value, dict) else value


def _title_without_mlmd(kind: ArtifactTypeSchema) -> str:
    """Return the title kept for a type; for a type that is not Kubeflow's own, that is its whole schema."""
    title = title_of(kind)
    return (
        title.removeprefix("system.")
        if title.startswith("system.")
        else str(*cast(dict[str, str], kind).values())
    )
