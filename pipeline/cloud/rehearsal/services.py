"""The services as which a rehearsal runs its tasks: how inputs are made, and outputs kept."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from slipway.pipeline.cloud.execution import (
    Done,
    ExecutorInput,
    ExecutorOutput,
    RuntimeArtifact,
    executor_input,
    fold,
)
from slipway.pipeline.cloud.pipeline_job import (
    ComponentSpec,
    ImporterSpec,
    PipelineContainerSpec,
    PipelineSpec,
)
from slipway.pipeline.cloud.rehearsal.done_tasks import cache_key


class ServiceName(StrEnum):
    """The services; Kubeflow Pipelines kept its metadata in ML Metadata up to 2.17."""

    VERTEX = "vertex"
    KUBEFLOW = "kubeflow"
    KUBEFLOW_WITHOUT_MLMD = "kubeflow-without-mlmd"


class Service(Protocol):
    """What is special about a service."""

    def known_as(self, pipeline: str) -> str:
        """The name under which a pipeline's artifacts are kept apart from other services'."""

    def inputs(
        self,
        spec: PipelineSpec,
        name: str,
        *,
        done: Mapping[str, Done],
        parameters: Mapping[str, object],
        folder: str,
    ) -> ExecutorInput:
        """What a task is given; see `slipway.pipeline.cloud.execution.executor_input`."""

    def cache_key(
        self, component: ComponentSpec, container: PipelineContainerSpec, given: ExecutorInput
    ) -> str:
        """The key by which it finds an equal task."""

    def imported(
        self, given: ExecutorInput, uri: str, importer: ImporterSpec
    ) -> dict[str, list[RuntimeArtifact]]:
        """What an importer makes, which has no container.

        Args:
            uri: the address of the artifact that is there already.

        Returns:
            The artifacts by output key.

        Raises:
            ComponentError: the service would find nothing there.
        """

    def before(self, given: ExecutorInput) -> None:
        """Brings to a container what it needs."""

    def after(self, given: ExecutorInput, output: ExecutorOutput) -> dict[str, list[RuntimeArtifact]]:
        """Takes away what a container has made.

        Returns:
            The artifacts by output key, as later tasks and resolvers find them.
        """

    def ends(self) -> None:
        """Removes a container, however its task ended."""


class Vertex:
    """Vertex AI Pipelines: tasks read and write the artifacts where they are."""

    def known_as(self, pipeline: str) -> str:
        """The pipeline's own name."""
        return pipeline

    def inputs(
        self,
        spec: PipelineSpec,
        name: str,
        *,
        done: Mapping[str, Done],
        parameters: Mapping[str, object],
        folder: str,
    ) -> ExecutorInput:
        """What a task is given."""
        return executor_input(spec, name, done=done, parameters=parameters, folder=folder)

    def cache_key(
        self, component: ComponentSpec, container: PipelineContainerSpec, given: ExecutorInput
    ) -> str:
        """The key by which it finds an equal task."""
        return cache_key(component, container, given)

    def imported(
        self, given: ExecutorInput, uri: str, importer: ImporterSpec
    ) -> dict[str, list[RuntimeArtifact]]:
        """The artifact at that address; nobody looks there."""
        made = {key: entry["artifacts"] for key, entry in given["outputs"]["artifacts"].items()}
        for artifacts in made.values():
            for artifact in artifacts:
                artifact["uri"], artifact["metadata"] = uri, dict(importer.get("metadata", {}))
        return made

    def before(self, given: ExecutorInput) -> None:
        """Makes the folder of the output file, where it is on this machine."""
        if "://" not in given["outputs"]["outputFile"]:
            Path(given["outputs"]["outputFile"]).parent.mkdir(parents=True, exist_ok=True)

    def after(self, given: ExecutorInput, output: ExecutorOutput) -> dict[str, list[RuntimeArtifact]]:
        """Adds what is new of the artifacts."""
        fold(given, output)
        return {key: entry["artifacts"] for key, entry in given["outputs"]["artifacts"].items()}

    def ends(self) -> None:
        """There is nothing to remove: artifacts are used where they are."""
