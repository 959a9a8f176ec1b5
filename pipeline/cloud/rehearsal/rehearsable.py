"""Checks and adapts a compiled job for a rehearsal. Pure.

All parameters need values, and there may be no container components and no pushes to where models are
served.
"""

import json
import shlex
from collections.abc import Iterator, Mapping

from slipway.components.beam_args import read_options
from slipway.components.nearest import nearest
from slipway.pipeline.cloud.complete_job import component_of, container_tasks, tasks_of, title_of
from slipway.pipeline.cloud.pipeline_job import PipelineContainerSpec, PipelineJob, PipelineSpec
from slipway.pipeline.errors import UsageError

EXECUTOR_FLAG = "--executor_class_path"
_STOCK_PUSHER = "tfx.components.pusher.executor.Executor"
# TFX's Trainer, Tuner, BulkInferrer and Pusher for Vertex AI and AI Platform.
_PAID = "tfx.extensions.google_cloud_ai_platform."
_DESTINATION = "push_destination"
_NUMBERS: Mapping[str, tuple[type, str]] = {
    "NUMBER_INTEGER": (int, "a whole number"),
    "NUMBER_DOUBLE": (float, "a number"),
}


def runtime_values(
    spec: PipelineSpec, *, name: str, given: Mapping[str, str], defaults: Mapping[str, object]
) -> dict[str, object]:
    """Return the values of a user's runtime parameters, in the types that the job declares.

    Args:
        given: the values as text, by name.
        defaults: the pipeline's declared defaults, which TFX drops when it compiles; used only in hints.

    Raises:
        UsageError: a name is not a parameter's, a value has another type, or a parameter has no value.
    """
    declared = spec["root"].get("inputDefinitions", {}).get("parameters", {})
    values: dict[str, object] = {}
    for key, text in given.items():
        if key not in declared:
            near = f"Closest: {nearest(key, declared, similarity=0)!r}." if declared else "It has none."
            raise UsageError(f"--set {key}: {name} has no such parameter. {near}")
        convert, kind = _NUMBERS.get(declared[key].get("parameterType", ""), (str, "text"))
        try:
            values[key] = convert(text)
        except ValueError:
            raise UsageError(f"--set {key}={text}: must be {kind}.") from None
    if missing := sorted(declared.keys() - values.keys()):
        words = (shlex.quote(f"{key}={defaults.get(key, 'VALUE')}") for key in missing)
        raise UsageError(
            f"{name}: no value for the runtime parameter{'s' * (len(missing) > 1)} {', '.join(missing)}. "
            "A job has no defaults: TFX drops them when it compiles.",
            hint=f"give what the job is to be started with: --set {' --set '.join(words)}",
        )
    return values


def check_containers(spec: PipelineSpec, *, image: str) -> None:
    """Reject container components: a rehearsal runs Python modules, and no containers.

    Args:
        image: the image of all other tasks.

    Raises:
        UsageError: names the components.
    """
    own = [
        f"{name} ({container['image']})"
        for name, container in container_tasks(spec)
        if container["image"] != image or "-m" not in container.get("command", ())
    ]
    if own:
        raise UsageError(
            f"{', '.join(own)}: a container component cannot be rehearsed. A rehearsal starts no containers, "
            "and runs no command of one on this machine.",
            hint="rehearse the pipeline without it, e.g. by an argument of its function: --set NAME=VALUE",
        )


def run_every_task(spec: PipelineSpec) -> None:
    """Turn off caching for all tasks of a user's own pipeline; the spec is changed in place.

    A service identifies code by its image alone, and a rehearsal builds no image: an edited component would
    not run.
    """
    for task in tasks_of(spec).values():
        task["cachingOptions"] = {"enableCache": False}


def check_waits(spec: PipelineSpec) -> None:
    """Reject tasks that wait for one which the job does not have.

    TFX makes two tasks, with other names, of a resolver of the latest blessed model.

    Raises:
        UsageError: names the tasks.
    """
    tasks = tasks_of(spec)
    for name, task in tasks.items():
        if missing := sorted(set(task.get("dependentTasks", ())) - tasks.keys()):
            raise UsageError(
                f"{name} waits for {', '.join(missing)}, and TFX compiles no task of that name: no service "
                "could run the job.",
                hint="TFX makes tasks of other names of a resolver of the latest blessed model; let the node "
                "read what it finds, or not wait for it (add_upstream_node)",
            )


def check_jobs(spec: PipelineSpec) -> None:
    """Reject tasks that start jobs on Google Cloud, which cost money, such as TFX's Trainer for AI Platform.

    Args:
        spec: the pipeline, with all Beam options, since a pipeline may name Dataflow itself.

    Raises:
        UsageError: names the tasks.
    """
    executors = ((name, _executor(container)) for name, container in container_tasks(spec))
    paid = [f"{name} ({executor})" for name, executor in executors if executor.startswith(_PAID)]
    if paid:
        raise UsageError(
            f"{', '.join(paid)}: would start a job on Google Cloud, or deploy a model there. "
            "A rehearsal does neither.",
            hint="rehearse the pipeline with TFX's own component, e.g. by an argument of its function: "
            "--set NAME=VALUE",
        )
    elsewhere = [name for name, container in container_tasks(spec) if _names_dataflow(container)]
    if elsewhere:
        raise UsageError(
            f"{', '.join(elsewhere)}: would start a Dataflow job. A rehearsal runs Beam on this machine.",
            hint="--beam=--runner=DirectRunner overrides the pipeline's own runner",
        )


def redirect_pushes(job: PipelineJob, *, folder: str) -> None:
    """Make TFX's Pusher push into a folder of the rehearsal; the job is changed in place.

    Args:
        folder: gets a subfolder for each task that pushes.

    Raises:
        UsageError: another component pushes, to a destination that only it knows; names the component.
    """
    spec = job["pipelineSpec"]
    pushers = list(_pushers(spec))
    unknown = [
        f"{name} ({executor or 'no executor of TFX'})"
        for name, executor in pushers
        if executor != _STOCK_PUSHER
    ]
    if unknown:
        raise UsageError(
            f"{', '.join(unknown)}: makes a PushedModel but is not TFX's Pusher, so its destination is "
            "unknown. A rehearsal publishes nothing.",
            hint="rehearse the pipeline without it, e.g. by an argument of its function: --set NAME=VALUE",
        )
    for name, _ in pushers:
        parameters = tasks_of(spec)[name].setdefault("inputs", {}).setdefault("parameters", {})
        asked = parameters.get(_DESTINATION, {}).get("runtimeValue", {}).get("constant")
        destination = json.loads(asked) if isinstance(asked, str) else {}
        destination.setdefault("filesystem", {})["base_directory"] = f"{folder}/{name}"
        parameters[_DESTINATION] = {"runtimeValue": {"constant": json.dumps(destination)}}


def _pushers(spec: PipelineSpec) -> Iterator[tuple[str, str]]:
    """Yield the tasks that produce a PushedModel, each with its executor's class; empty if none is named."""
    for name, container in container_tasks(spec):
        made = component_of(spec, name).get("outputDefinitions", {}).get("artifacts", {})
        if any(title_of(each["artifactType"]).endswith("PushedModel") for each in made.values()):
            yield name, _executor(container)


def _names_dataflow(container: PipelineContainerSpec) -> bool:
    parts = (container, container.get("lifecycle", {}).get("preCacheCheck", {}))
    return any("dataflow" in read_options(part.get("args", ())).get("runner", "").lower() for part in parts)


def _executor(container: PipelineContainerSpec) -> str:
    """Return the class of a task's executor; empty if none is named."""
    words = [*container.get("command", ()), *container.get("args", ())]
    return words[words.index(EXECUTOR_FLAG) + 1] if EXECUTOR_FLAG in words else ""
