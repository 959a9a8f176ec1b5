"""The services that a rehearsal can imitate: how each prepares a task's inputs and keeps its outputs."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from slipway.pipeline.cloud.executor_input import (
    ExecutorInput,
    ExecutorOutput,
    RuntimeArtifact,
    TaskOutputs,
    apply_executor_output,
    executor_input,
)
from slipway.pipeline.cloud.pipeline_job import (
    ComponentSpec,
    ImporterSpec,
    PipelineContainerSpec,
    PipelineSpec,
)
from slipway.pipeline.cloud.rehearsal.done_tasks import cache_key


class ServiceName(StrEnum):
    """The services; Kubeflow Pipelines up to 2.17 keeps its metadata in ML Metadata."""

    VERTEX = "vertex"
    KUBEFLOW = "kubeflow"
    KUBEFLOW_WITHOUT_MLMD = "kubeflow-without-mlmd"


class Service:
    """The steps in which services differ. As they stand, they are those of Vertex AI Pipelines.

    There, tasks read and write the artifacts where they are.
    """

    def artifact_namespace(self, pipeline: str) -> str:
        """Return the name under which a pipeline's artifacts are kept, apart from those of other services."""
        return pipeline

    def inputs(
        self,
        spec: PipelineSpec,
        name: str,
        *,
        done: Mapping[str, TaskOutputs],
        parameters: Mapping[str, object],
        folder: str,
    ) -> ExecutorInput:
        """Return the inputs of a task; see `slipway.pipeline.cloud.executor_input.executor_input`."""
        return executor_input(spec, name, done=done, parameters=parameters, folder=folder)

    def cache_key(
        self, component: ComponentSpec, container: PipelineContainerSpec, given: ExecutorInput
    ) -> str:
        """Return the key by which the service finds an equal task."""
        return cache_key(component, container, given)

    def imported(
        self, given: ExecutorInput, uri: str, importer: ImporterSpec
    ) -> dict[str, list[RuntimeArtifact]]:
        """Return the outputs of an importer, which has no container; whether they exist is not checked."""
        made = {key: entry["artifacts"] for key, entry in given["outputs"]["artifacts"].items()}
        for artifacts in made.values():
            for artifact in artifacts:
                artifact["uri"], artifact["metadata"] = uri, dict(importer.get("metadata", {}))
        return made

    def prepare_task(self, given: ExecutorInput) -> None:
        """Prepare the files that a container needs: the output file's folder, if it is on this machine."""
        if "://" not in given["outputs"]["outputFile"]:
            Path(given["outputs"]["outputFile"]).parent.mkdir(parents=True, exist_ok=True)

    def collect_outputs(
        self, given: ExecutorInput, output: ExecutorOutput
    ) -> dict[str, list[RuntimeArtifact]]:
        """Collect the outputs of a container, with the executor's changes.

        Returns:
            The artifacts by output key, as later tasks and resolvers find them.
        """
        apply_executor_output(given, output)
        return {key: entry["artifacts"] for key, entry in given["outputs"]["artifacts"].items()}

    def clean_up(self) -> None:
        """Clean up after a container, however its task ended."""
