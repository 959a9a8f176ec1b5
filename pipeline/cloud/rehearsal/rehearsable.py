"""The limits of a rehearsal: no containers, and no pushes to where models are served. Pure."""

import json
from collections.abc import Iterator

from slipway.pipeline.cloud.complete_job import component_of, container_tasks, tasks_of, title_of
from slipway.pipeline.cloud.pipeline_job import PipelineJob, PipelineSpec
from slipway.pipeline.errors import UsageError

_EXECUTOR_FLAG = "--executor_class_path"
_STOCK_PUSHER = "tfx.components.pusher.executor.Executor"
_DESTINATION = "push_destination"


def check_containers(spec: PipelineSpec, *, image: str) -> None:
    """Rejects container components: a rehearsal runs Python modules, and no containers.

    Args:
        image: of all tasks that are none.

    Raises:
        UsageError: names them.
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


def redirect_pushes(job: PipelineJob, *, folder: str) -> None:
    """Has TFX's Pusher push into a folder of the rehearsal; changes the job in place.

    Args:
        job: of a user's own pipeline.
        folder: gets a folder for each task that pushes.

    Raises:
        UsageError: another component pushes, to where it alone knows; names it.
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
    """The tasks that make a PushedModel, each with its executor's class; empty if none is named."""
    for name, container in container_tasks(spec):
        made = component_of(spec, name).get("outputDefinitions", {}).get("artifacts", {})
        if any(title_of(each["artifactType"]).endswith("PushedModel") for each in made.values()):
            words = [*container.get("command", ()), *container.get("args", ())]
            yield name, words[words.index(_EXECUTOR_FLAG) + 1] if _EXECUTOR_FLAG in words else ""
