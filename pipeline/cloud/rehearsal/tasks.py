"""Presents a compiled job to the engine: as a graph, with each task run by its container's command.

This code runs in the task server (task_server.py), from a staged copy of the image's files; each task runs
in a process that was forked for it.
"""

import json
import runpy
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from slipway.components.errors import ComponentError
from slipway.components.store_address import is_remote
from slipway.pipeline.cloud.complete_job import (
    TFX_DAG,
    component_of,
    executor_of,
    is_exit_handler,
    is_lookup_executor,
    tasks_of,
    title_of,
)
from slipway.pipeline.cloud.container.kubeflow_input import ABSENT, component_metadata
from slipway.pipeline.cloud.executor_input import (
    ExecutorInput,
    ExecutorOutput,
    RuntimeArtifact,
    apply_executor_output,
    command_of,
    filled,
)
from slipway.pipeline.cloud.pipeline_job import (
    ImporterSpec,
    PipelineContainerSpec,
    PipelineJob,
    PipelineSpec,
    ResolverSpec,
)
from slipway.pipeline.cloud.rehearsal.condition import holds
from slipway.pipeline.cloud.rehearsal.containers import Containers
from slipway.pipeline.cloud.rehearsal.done_tasks import DoneTasks
from slipway.pipeline.cloud.rehearsal.rehearsable import EXECUTOR_FLAG
from slipway.pipeline.cloud.rehearsal.services import Service
from slipway.pipeline.cloud.workload_in_image import CHECKPOINTS
from slipway.pipeline.runs import record
from slipway.pipeline.runs.graph import CONDITION, Graph, Node

_TIMEOUT = "timeout"
_RESOLVER = "Resolver"

EXIT_HANDLER = "ExitHandler"
"""The type of a node that runs after all others have ended."""
STATUS_FILE = "status.json"
"""The file in the run's folder with the final status of the tasks, for exit handlers."""


class Files(Protocol):
    """Files by address; see `remote_files.TfxFiles`."""

    def exists(self, address: str) -> bool:
        """Return True if there is a file or a folder at an address."""

    def take(self, address: str) -> str | None:
        """Return the text of a file, and remove it; None if there is none."""

    def fetch(self, address: str, folder: Path) -> None:
        """Copy the folder at an address; do nothing if there is none."""


@dataclass(frozen=True)
class Rehearsed:
    """A job to rehearse.

    Attributes:
        job: the compiled job, with paths that are valid where its tasks run.
        files: reads artifacts that are not on this machine.
        containers: the containers that the tasks run in; None: each runs in a process of this machine.
    """

    job: PipelineJob
    run_id: str
    runs: Path
    files: Files
    service: Service = field(default_factory=Service)
    containers: Containers | None = None

    @property
    def spec(self) -> PipelineSpec:
        """The pipeline."""
        return self.job["pipelineSpec"]

    @property
    def graph(self) -> Graph:
        """The tasks in topological order, with the job's retries and time limits."""
        tasks = tasks_of(self.spec)
        ordered: list[str] = []
        while len(ordered) < len(tasks):
            ready = [name for name in tasks if name not in ordered and self._upstream(name) <= set(ordered)]
            if not ready:
                left = sorted(tasks.keys() - set(ordered))
                raise ComponentError(
                    f"these tasks wait for each other, or for a missing task: {', '.join(left)}"
                )
            ordered += sorted(ready)
        return Graph(self.spec["pipelineInfo"]["name"], tuple(map(self._node, ordered)))

    def _upstream(self, name: str) -> set[str]:
        tasks = tasks_of(self.spec)
        if is_exit_handler(tasks[name]):
            return {other for other, task in tasks.items() if not is_exit_handler(task)}
        return set(tasks[name].get("dependentTasks", ()))

    def _node(self, name: str) -> Node:
        task, executor = tasks_of(self.spec)[name], executor_of(self.spec, name)
        made = component_of(self.spec, name).get("outputDefinitions", {}).get("artifacts", {})
        policy, condition = task.get("retryPolicy", {}), task.get("triggerPolicy", {}).get("condition")
        command = executor.get("container", {}).get("command", ())
        limit = next((word for word in command[1:] if not word.startswith("-")), None)
        return Node(
            id=name,
            type=_RESOLVER
            if is_lookup_executor(executor)
            else EXIT_HANDLER
            if is_exit_handler(task)
            else name,
            upstream=tuple(sorted(self._upstream(name))),
            params={CONDITION: condition} if condition else {},
            is_resolver=is_lookup_executor(executor),
            outputs={key: title_of(entry["artifactType"]) for key, entry in made.items()},
            retries=int(policy.get("maxRetryCount", 0)),
            backoff_s=float(str(policy.get("backoffDuration", "1s")).removesuffix("s")),
            timeout_s=float(limit) if command[:1] == [_TIMEOUT] and limit else None,
        )

    def executor_modules(self) -> list[str]:
        """Return the modules of the tasks' executors and commands; none if the containers import them."""
        return [] if self.containers else list(dict.fromkeys(self._modules()))

    def _modules(self) -> Iterator[str]:
        for name in self.graph.ids:
            container = executor_of(self.spec, name).get("container", {})
            for part in (container.get("lifecycle", {}).get("preCacheCheck", {}), container):
                words = [*part.get("command", ()), *part.get("args", ())]
                if "-m" in words:
                    yield words[words.index("-m") + 1]
                if EXECUTOR_FLAG in words:
                    yield words[words.index(EXECUTOR_FLAG) + 1].rpartition(".")[0]

    def run_task(self, name: str, *, attempt: int) -> record.NodeOutputs:
        """Run one task to its end, in this process.

        Args:
            attempt: the number of the attempt, from 1.

        Returns:
            As `slipway.pipeline.engine.tfx.launch.launch`; the state is `cached` if an equal task's outputs
            were reused.

        Raises:
            Exception: whatever the task raised.
        """
        tasks = DoneTasks(self.runs, self.run_id, self._namespace)
        done = tasks.of_this_run()
        if is_exit_handler(tasks_of(self.spec)[name]):
            status = (self.runs / self.run_id / STATUS_FILE).read_text(encoding="utf-8")
            done[TFX_DAG] = {"artifacts": {}, "parameters": {}, "status": json.loads(status)}
        given = self.service.inputs(
            self.spec,
            name,
            done=done,
            parameters=self.job["runtimeConfig"].get("parameterValues", {}),
            folder=f"{self.job['runtimeConfig']['gcsOutputDirectory']}/{self.run_id}/{name}_{attempt}",
        )
        condition = tasks_of(self.spec)[name].get("triggerPolicy", {}).get("condition")
        inputs = {key: entry["artifacts"] for key, entry in given["inputs"]["artifacts"].items()}
        if condition and not holds(condition, inputs):
            return {"state": "skipped", "execution_id": None, "outputs": {}}
        executor = executor_of(self.spec, name)
        if "resolver" in executor:
            return self._resolve(name, executor["resolver"], given, tasks)
        if "importer" in executor:
            return self._import(name, executor["importer"], given, tasks)
        return self._execute(name, executor["container"], given, tasks, attempt)

    @property
    def _namespace(self) -> str:
        """The name of the pipeline whose artifacts are known; a container sees none of another root."""
        name = self.service.artifact_namespace(self.spec["pipelineInfo"]["name"])
        root = self.job["runtimeConfig"]["gcsOutputDirectory"]
        return f"{name} at {root}" if is_remote(root) else name

    def _resolve(
        self, name: str, resolver: ResolverSpec, given: ExecutorInput, tasks: DoneTasks
    ) -> record.NodeOutputs:
        found = {}
        for key, query in resolver["outputArtifactQueries"].items():
            inputs = given["inputs"]["artifacts"].values()
            # A query that depends on another query without a result finds nothing.
            is_open = all(entry["artifacts"] for entry in inputs)
            found[key] = tasks.find(filled(query["filter"], given)) if is_open else []
        tasks.keep(name, artifacts=found, parameters={}, key="")
        return self._result(name, found, is_new=any(found.values()))

    def _import(
        self, name: str, importer: ImporterSpec, given: ExecutorInput, tasks: DoneTasks
    ) -> record.NodeOutputs:
        address = importer["artifactUri"]
        uri = address.get("constant") or given["inputs"]["parameterValues"][address["runtimeParameter"]]
        made = self.service.imported(given, uri, importer)
        tasks.keep(name, artifacts=made, parameters={}, key=f"imported {uri}")
        return self._result(name, made)

    def _execute(
        self,
        name: str,
        container: PipelineContainerSpec,
        given: ExecutorInput,
        tasks: DoneTasks,
        attempt: int,
    ) -> record.NodeOutputs:
        output_file: str = given["outputs"]["outputFile"]
        driver = container.get("lifecycle", {}).get("preCacheCheck")
        if driver:
            self.service.prepare_task(given)
            self._run(f"{name}-{attempt}-driver", container, command_of(driver, given), output_file)
            apply_executor_output(given, self._taken(output_file))
        key = self.service.cache_key(component_of(self.spec, name), container, given)
        may_be_cached = tasks_of(self.spec)[name].get("cachingOptions", {}).get("enableCache", False)
        if may_be_cached and (earlier := tasks.cached(key)):
            artifacts, parameters = earlier["artifacts"], earlier["parameters"]
            tasks.keep(name, artifacts=artifacts, parameters=parameters, key="")
            return {**self._result(name, artifacts), "state": "cached", "why": "an equal task ran before"}
        try:
            self.service.prepare_task(given)
            self._run(f"{name}-{attempt}", container, command_of(container, given), output_file)
            output = self._taken(output_file)
            made = self.service.collect_outputs(given, output)
        finally:
            self.service.clean_up()
        parameters = {
            key: output.get("parameterValues", {})[key]
            for key in given["outputs"]["parameters"]
            if key in output.get("parameterValues", {})
        }
        tasks.keep(name, artifacts=made, parameters=parameters, key=key)
        return self._result(name, made)

    def _run(self, name: str, container: PipelineContainerSpec, words: list[str], output_file: str) -> None:
        if self.containers is None:
            _run_here(words)
            return
        # The task's own folder, the folder of checkpoints, and the folder that versions are pushed into.
        root = self.job["runtimeConfig"]["gcsOutputDirectory"]
        writable = [] if is_remote(root) else [Path(output_file).parent, Path(root, CHECKPOINTS)]
        writable += [Path(each) for each in self.containers.folders if each != root]
        self.containers.run(f"slipway-{self.run_id}-{name}".lower(), container, words, writable=writable)

    def _result(
        self, name: str, made: Mapping[str, list[RuntimeArtifact]], *, is_new: bool = True
    ) -> record.NodeOutputs:
        """Return the result for the engine, with local copies of remote artifacts, which can be inspected."""
        outputs = {
            key: [
                record.Artifact(
                    uri=self._here(artifact["uri"], f"{name}/{key}/{number}"),
                    type=title_of(artifact["type"]).removeprefix("tfx."),
                    properties=component_metadata(artifact["metadata"]),
                )
                for number, artifact in enumerate(artifacts)
                if ABSENT not in artifact["metadata"]
            ]
            for key, artifacts in made.items()
        }
        return {
            "state": "complete",
            "execution_id": time.time_ns() if is_new else None,
            "outputs": outputs if is_new else {},
        }

    def _taken(self, address: str) -> ExecutorOutput:
        """Read a command's output file and remove it: the executor's has the driver's address.

        TensorFlow remembers the size of a file on gs:// for seconds, and would cut a longer one in its place.
        """
        if is_remote(address):
            text = self.files.take(address)
        else:
            text = Path(address).read_text(encoding="utf-8") if Path(address).exists() else None
            Path(address).unlink(missing_ok=True)
        document: ExecutorOutput = json.loads(text or "{}")
        return document

    def _here(self, uri: str, place: str) -> str:
        if not is_remote(uri):
            return uri
        copy = self.runs / self.run_id / "artifacts" / place
        self.files.fetch(uri, copy)
        return str(copy)


def _run_here(words: list[str]) -> None:
    """Run a command. A Python module runs in this process, which has already imported TFX.

    Raises:
        ComponentError: another command ended with an error.
        Exception: whatever the module raised.
    """
    if words[0] == _TIMEOUT:  # the engine enforces the time limit
        words = words[next(i for i, word in enumerate(words) if i and not word.startswith("-")) + 1 :]
    if words[:2] != ["python", "-m"]:
        code = subprocess.run(words, check=False).returncode
        if code:
            raise ComponentError(f"{words[0]} ended with code {code}")
        return
    sys.argv = words[2:]
    try:
        runpy.run_module(words[2], run_name="__main__", alter_sys=True)
    except ImportError as error:
        if missing := _missing_module(error):
            raise ComponentError(
                missing,
                hint="put it below workloads/ or components/; .dockerignore says what is in the image",
            ) from error
        raise
    except SystemExit as end:
        if isinstance(end.__cause__, Exception):
            raise end.__cause__ from None
        if end.code:
            raise ComponentError(f"python -m {words[2]} ended with code {end.code}") from end


def _missing_module(error: BaseException | None) -> str:
    """Return a message that names the missing module and its importer: TFX names only the latter."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name:
            frames = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
            ours = [path.relative_to(Path.cwd()) for path in frames if path.is_relative_to(Path.cwd())]
            place = f", which {ours[-1]} imports," if ours else ""
            return f"the module {error.name}{place} is not in the image"
        error = error.__cause__ or error.__context__
    return ""
