"""Completes a compiled job: TFX's compiler leaves out resources, retries, time limits and labels. Pure.

A job is the JSON of a PipelineJob whose spec is of schema 2.1.0, as Vertex AI Pipelines and Kubeflow read it.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from slipway.components.nearest import nearest
from slipway.pipeline.cloud.image_contents import IMAGE_PACKAGES, IMAGE_ROOT
from slipway.pipeline.cloud.pipeline_job import (
    ArtifactTypeSchema,
    ComponentSpec,
    Exec,
    ExecutorSpec,
    PipelineContainerSpec,
    PipelineJob,
    PipelineSpec,
    PipelineTaskSpec,
)
from slipway.pipeline.cloud.task_resources import resources_of
from slipway.pipeline.config import NodeConfig, WorkloadConfig
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.wiring.gate_settings import judges_age

TFX_DAG = "tfx-dag"
"""The task that wraps all others if there is an exit handler."""

TASK = "slipway.pipeline.cloud.container.task"
"""The entry point of our containers."""

FIND = "slipway.pipeline.cloud.container.find_artifacts"
"""The entry point of the containers that replace resolvers."""

# As in the local engine: the wait before a retry doubles up to this limit.
_BACKOFF_FACTOR = 2.0
_MAX_BACKOFF = "600s"
# Between SIGTERM and SIGKILL for a task that exceeds its time limit, as in the local engine.
_GRACE_S = 10
DRIVER = ("python", "-m", "slipway.pipeline.cloud.container.span_driver")
"""Replaces TFX's own driver, which would not find our artifact types."""
_TITLE = re.compile(r"^title: (\S+)", re.MULTILINE)
# The title that TFX's queries use for an artifact type that is not its own; no artifact has it.
_NO_TITLE = 'schema_title="tfx.Artifact"'
# The flag that gives TFX's entry point the types of its parameters.
_TYPES_FLAG = "--json_serialized_inputs_spec_args"
# The name of an input in a task's condition.
_INPUT = re.compile(r"(?<=inputs\.artifacts\[')([^']*)(?='\])")
_ABSOLUTE = re.compile(r"/[^\s/:]+/[^\s:]+")


def complete(job: PipelineJob, config: WorkloadConfig, *, root: str) -> PipelineJob:
    """Fill in what TFX's compiler drops; the job is changed in place and returned.

    Args:
        job: as KubeflowV2DagRunner compiles it.
        config: the workload; `nodes` holds retries and time limits, `cloud` the rest.

    Raises:
        ConfigError: `nodes` or `cloud.tasks` names a task that the pipeline does not have, or a parameter
            names a file that is on this machine only.
    """
    spec = job["pipelineSpec"]
    containers = dict(container_tasks(spec))
    _check_names(spec, config)
    _check_paths(spec, root=root, but=(config.push.destination, config.train.interpreter))
    job["labels"] = {**job.get("labels", {}), **config.cloud.labels, "slipway_workload": config.name}
    for name, container in containers.items():
        task = tasks_of(spec)[name]
        container["resources"] = resources_of(name, config.cloud)
        may_be_cached = not (is_exit_handler(task) or _depends_on_more(name, config))
        task["cachingOptions"] = {"enableCache": config.cloud.cache and may_be_cached}
        if name in config.nodes:
            limit(task, container, config.nodes[name])
    for driver in drivers(spec):
        driver["command"] = list(DRIVER)
    return complete_any_job(job, root=root)


def complete_any_job(job: PipelineJob, *, root: str) -> PipelineJob:
    """Fill in what any job needs to run; it is changed in place and returned."""
    spec = job["pipelineSpec"]
    job["runtimeConfig"] = {**job.get("runtimeConfig", {}), "gcsOutputDirectory": root}
    _complete_dependencies(spec)
    _complete_conditions(spec)
    _complete_types(spec)
    _complete_resolvers(spec)
    hand_parameters_down(spec)
    return job


def tasks_of(spec: PipelineSpec) -> dict[str, PipelineTaskSpec]:
    """Return the tasks of a pipeline by name, including an exit handler.

    If there is an exit handler, TFX wraps the other tasks in a single task, which the exit handler waits
    for.
    """
    tasks = spec["root"]["dag"]["tasks"]
    if TFX_DAG not in tasks:
        return tasks
    wrapped = spec["components"][TFX_DAG]["dag"]["tasks"]
    return {**wrapped, **{name: task for name, task in tasks.items() if name != TFX_DAG}}


def is_exit_handler(task: PipelineTaskSpec) -> bool:
    """Return True if a task runs at the end, whatever happened to the others."""
    return task.get("triggerPolicy", {}).get("strategy") == "ALL_UPSTREAM_TASKS_COMPLETED"


def executor_of(spec: PipelineSpec, name: str) -> ExecutorSpec:
    """Return the executor of a task: a mapping whose only key is `container`, `importer` or `resolver`."""
    component = component_of(spec, name)
    return spec["deploymentSpec"]["executors"][component["executorLabel"]]


def is_lookup_executor(executor: ExecutorSpec) -> bool:
    """Return True if a task only finds artifacts of earlier runs: a resolver, or our own container for it."""
    return "resolver" in executor or FIND in executor.get("container", {}).get("command", ())


def component_of(spec: PipelineSpec, name: str) -> ComponentSpec:
    """Return the component of a task, which is its interface."""
    return spec["components"][tasks_of(spec)[name]["componentRef"]["name"]]


def container_tasks(spec: PipelineSpec) -> Iterator[tuple[str, PipelineContainerSpec]]:
    """Yield the tasks that run in a container, each with its container's specification."""
    for name in tasks_of(spec):
        executor = executor_of(spec, name)
        if "container" in executor:
            yield name, executor["container"]


def drivers(spec: PipelineSpec) -> list[Exec]:
    """Return the drivers of all tasks, which resolve the files to read, e.g. Ingest's or an ExampleGen's."""
    containers = (container for _, container in container_tasks(spec))
    return [each["lifecycle"]["preCacheCheck"] for each in containers if "lifecycle" in each]


def title_of(artifact_type: ArtifactTypeSchema) -> str:
    """Return the name of an artifact's type, e.g. `tfx.Examples`."""
    if "schemaTitle" in artifact_type:
        return str(artifact_type["schemaTitle"])
    match = _TITLE.search(artifact_type.get("instanceSchema", ""))
    return match[1] if match else "tfx.Artifact"


def producers_of(task: PipelineTaskSpec) -> set[str]:
    """Return the tasks whose outputs a task takes."""
    inputs = task.get("inputs", {})
    found = {
        source["taskOutputArtifact"]["producerTask"]
        for source in inputs.get("artifacts", {}).values()
        if "taskOutputArtifact" in source
    }
    return found | {
        source["taskOutputParameter"]["producerTask"]
        for source in inputs.get("parameters", {}).values()
        if "taskOutputParameter" in source
    }


def node_of(task: str) -> str:
    """Return the node that a task was made from: the resolver of a blessed model becomes two tasks."""
    return task.removesuffix("-model-resolver").removesuffix("-model-blessing-resolver")


def hand_parameters_down(spec: PipelineSpec) -> None:
    """Pass the pipeline's parameters to the task that wraps all others, which TFX does not do."""
    wrapper = spec["root"]["dag"]["tasks"].get(TFX_DAG)
    if wrapper is None:
        return
    declared = spec["root"].get("inputDefinitions", {}).get("parameters", {})
    for task in spec["components"][TFX_DAG]["dag"]["tasks"].values():
        for source in task.get("inputs", {}).get("parameters", {}).values():
            if name := source.get("componentInputParameter"):
                given = wrapper.setdefault("inputs", {}).setdefault("parameters", {})
                given[name] = {"componentInputParameter": name}
                taken = spec["components"][TFX_DAG].setdefault("inputDefinitions", {})
                taken.setdefault("parameters", {})[name] = declared[name]


def to_text(job: PipelineJob) -> str:
    """Return the job as the text of a file; equal jobs give equal text."""
    return json.dumps(job, indent=2, sort_keys=True) + "\n"


def limit(task: PipelineTaskSpec, container: PipelineContainerSpec, limits: NodeConfig) -> None:
    """Set a task's retries and its container's time limit; both are changed in place."""
    if limits.retries:
        task["retryPolicy"] = {
            "maxRetryCount": limits.retries,
            "backoffDuration": f"{limits.backoff_s:g}s",
            "backoffFactor": _BACKOFF_FACTOR,
            "backoffMaxDuration": _MAX_BACKOFF,
        }
    if limits.timeout_s:
        # The specification has no time limit for a task, so coreutils' timeout ends it inside the container.
        seconds = str(math.ceil(limits.timeout_s))
        container["command"] = ["timeout", f"--kill-after={_GRACE_S}", seconds, *container["command"]]


def _depends_on_more(name: str, config: WorkloadConfig) -> bool:
    """Return True if a task's result depends on what no service compares: a query's rows, the day."""
    return (name == "Ingest" and config.data.query is not None) or (name == "DataGate" and judges_age(config))


def _complete_dependencies(spec: PipelineSpec) -> None:
    tasks = tasks_of(spec)
    for task in tasks.values():
        for source in task.get("inputs", {}).get("parameters", {}).values():
            # TFX writes ID_task for the producer of a parameter, but no task has that name.
            output = source.get("taskOutputParameter", {})
            producer = output.get("producerTask", "")
            if producer and producer not in tasks:
                output["producerTask"] = producer.removesuffix("_task")
        named = {*task.get("dependentTasks", ()), *producers_of(task)}
        if named:
            task["dependentTasks"] = sorted(named)


def _complete_conditions(spec: PipelineSpec) -> None:
    """Name a condition's inputs as its task does; TFX names them by their producers, `_Node.output`."""
    for task in tasks_of(spec).values():
        own = {
            f"_{output['producerTask']}.{output['outputArtifactKey']}": key
            for key, source in task.get("inputs", {}).get("artifacts", {}).items()
            if (output := source.get("taskOutputArtifact"))
        }
        policy = task.get("triggerPolicy", {})
        if "condition" in policy:
            parts = _INPUT.split(policy["condition"])  # every second one is an input's name
            parts[1::2] = [own.get(name, name) for name in parts[1::2]]
            policy["condition"] = "".join(parts)


def _complete_types(spec: PipelineSpec) -> None:
    """Give each parameter that is another task's output that output's type; TFX declares all as strings.

    TFX's entry point, which gets the types as an argument, would otherwise pass a whole number on as 4.0.
    """
    for name, task in tasks_of(spec).items():
        declared = component_of(spec, name).get("inputDefinitions", {}).get("parameters", {})
        container = executor_of(spec, name).get("container", {})
        for key, source in task.get("inputs", {}).get("parameters", {}).items():
            output = source.get("taskOutputParameter")
            if output is None or output["producerTask"] not in tasks_of(spec) or key not in declared:
                continue
            made = component_of(spec, output["producerTask"]).get("outputDefinitions", {})
            if kind := made.get("parameters", {}).get(output["outputParameterKey"], {}).get("parameterType"):
                declared[key]["parameterType"] = kind
                args = container.get("args", [])
                if _TYPES_FLAG in args:
                    at = args.index(_TYPES_FLAG) + 1
                    told = json.loads(args[at])
                    told.get("parameters", {}).setdefault(key, {})["parameterType"] = kind
                    args[at] = json.dumps(told)


def _complete_resolvers(spec: PipelineSpec) -> None:
    for name in tasks_of(spec):
        queries = executor_of(spec, name).get("resolver", {}).get("outputArtifactQueries", {})
        for key, query in queries.items():
            declared = component_of(spec, name)["outputDefinitions"]["artifacts"][key]
            title = f'schema_title="{title_of(declared["artifactType"])}"'
            query["filter"] = query["filter"].replace(_NO_TITLE, title)


def _check_names(spec: PipelineSpec, config: WorkloadConfig) -> None:
    known = {name for name, _ in container_tasks(spec)}
    found = {name for name in tasks_of(spec) if "resolver" in executor_of(spec, name)}
    found |= {node_of(name) for name in found}
    where = "on Vertex AI, which looks that up itself"
    remedy = "leave it out, at least where cloud.service is vertex"
    if config.cloud.service == "kubeflow" and config.cloud.kubeflow.without_baseline:
        where, remedy = "with cloud.kubeflow.without_baseline", "leave it out, or set that to false"
    elif config.cloud.service == "kubeflow":
        known |= found  # a container each
    sections: dict[str, Mapping[str, object]] = {"nodes": config.nodes, "cloud.tasks": config.cloud.tasks}
    for key, section in sections.items():
        for name in section:
            if name in found - known:
                raise ConfigError(
                    f"{key}.{name}: the pipeline has no such task {where}",
                    hint=remedy,
                )
            if name not in known:
                near = nearest(name, known, similarity=0)
                raise ConfigError(
                    f"{key}.{name}: the pipeline has no such task; nearest: {near}",
                    hint=f"tasks: {', '.join(sorted(known))}",
                )


def _check_paths(spec: PipelineSpec, *, root: str, but: tuple[str | None, ...]) -> None:
    """Reject parameters that name a file of this machine that is not in the image.

    The files below a rehearsal's root, its push destination and its interpreter for TPU trainings are
    exempt.
    """
    for name, task in tasks_of(spec).items():
        for key, source in task.get("inputs", {}).get("parameters", {}).items():
            constant = source.get("runtimeValue", {}).get("constant")
            for text in _texts(constant):
                if text not in but and not text.startswith(f"{root}/") and _is_only_here(text):
                    raise ConfigError(
                        f"{name} would not find {text} (its parameter {key}): it is on this machine only",
                        hint="put the file below workloads/, which is part of the image, or on gs://",
                    )


def _is_only_here(text: str) -> bool:
    if not _ABSOLUTE.fullmatch(text) or text.startswith((f"{IMAGE_ROOT}/", f"{IMAGE_PACKAGES}/")):
        return False
    try:
        return Path(text).exists()
    except OSError:  # too long to be a path
        return False


def _texts(value: Any) -> Iterator[str]:
    """Yield all strings in a value; a string that holds JSON is parsed."""
    if isinstance(value, str):
        try:
            opened = json.loads(value)
        except ValueError:
            yield value
            return
        if isinstance(opened, (dict, list)):
            yield from _texts(opened)
        else:
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
