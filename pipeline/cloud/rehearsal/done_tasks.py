"""The tasks that rehearsals have completed, on disk; replaces the service's metadata store.

Resolvers look for artifacts here, and a task that may be cached looks for an equal one.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from slipway.pipeline.cloud.artifact_query import ArtifactQuery
from slipway.pipeline.cloud.executor_input import ExecutorInput, RuntimeArtifact, TaskOutputs
from slipway.pipeline.cloud.pipeline_job import ComponentSpec, PipelineContainerSpec
from slipway.pipeline.runs.record import file_name, write_json
from slipway.pipeline.runs.typed_json import DocumentError, read_document


class DoneTask(TypedDict):
    """The record of a completed task."""

    pipeline: str
    task: str
    at: int
    key: str
    artifacts: dict[str, list[RuntimeArtifact]]
    parameters: dict[str, object]


class DoneTasks:
    """The completed tasks of one run of a pipeline, and of earlier runs.

    Args:
        pipeline: the pipeline's name; resolvers and the cache see only its runs.
    """

    def __init__(self, runs: Path, run_id: str, pipeline: str) -> None:
        self._runs = runs
        self._folder = runs / run_id / "tasks"
        self._pipeline = pipeline

    def keep(
        self,
        task: str,
        *,
        artifacts: Mapping[str, list[RuntimeArtifact]],
        parameters: Mapping[str, object],
        key: str,
    ) -> None:
        """Record the outputs of a task of this run.

        Args:
            artifacts: by output key.
            parameters: by output key.
            key: the task's cache key; empty if the task did not run itself.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        document: DoneTask = {
            "pipeline": self._pipeline,
            "task": task,
            "at": time.time_ns(),
            "key": key,
            "artifacts": dict(artifacts),
            "parameters": dict(parameters),
        }
        write_json(self._folder / f"{file_name(task)}.json", document)

    def of_this_run(self) -> dict[str, TaskOutputs]:
        """Return the outputs of this run's tasks, by task."""
        return {
            document["task"]: {"artifacts": document["artifacts"], "parameters": document["parameters"]}
            for document in (read_document(DoneTask, path) for path in self._folder.glob("*.json"))
        }

    def cached(self, key: str) -> DoneTask | None:
        """Return the latest equal task, of any name, whose artifacts still exist."""
        equal = (d for d in self._all() if d["key"] == key)
        there = [document for document in equal if all(map(_is_there, _artifacts(document)))]
        return there[-1] if there else None

    def find(self, query: str) -> list[RuntimeArtifact]:
        """Return the latest artifact that a resolver's filter selects; empty if there is none.

        Args:
            query: the filter, as TFX's compiler writes it: clauses `a="b"` joined by AND.

        Raises:
            ComponentError: a clause has another form.
        """
        wanted = ArtifactQuery(query)
        produced = (d for d in self._all() if d["key"])  # excludes tasks that found or reused artifacts
        artifacts = [a for document in produced for a in _artifacts(document) if _is_there(a)]
        return [artifact for artifact in artifacts if wanted.fits(artifact)][-1:]

    def _all(self) -> list[DoneTask]:
        """Return the tasks of all runs, the oldest first. A damaged record counts as none."""
        found = []
        for path in self._runs.glob("*/tasks/*.json"):
            with contextlib.suppress(DocumentError):
                found.append(read_document(DoneTask, path))
        return sorted((d for d in found if d["pipeline"] == self._pipeline), key=lambda d: d["at"])


def cache_key(component: ComponentSpec, container: PipelineContainerSpec, given: ExecutorInput) -> str:
    """Return the key by which the service finds an equal task: interface, image, command, inputs, parameters.

    Source: "Configure execution caching", documentation of Vertex AI Pipelines.
    """
    parts = {
        "component": component,
        "container": {name: container.get(name) for name in ("image", "command", "args", "env")},
        "parameters": given["inputs"]["parameterValues"],
        "artifacts": {
            key: [artifact["name"] for artifact in entry["artifacts"]]
            for key, entry in given["inputs"]["artifacts"].items()
        },
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _artifacts(document: DoneTask) -> list[RuntimeArtifact]:
    return [artifact for made in document["artifacts"].values() for artifact in made]


def _is_there(artifact: RuntimeArtifact) -> bool:
    return "://" in artifact["uri"] or Path(artifact["uri"]).exists()
