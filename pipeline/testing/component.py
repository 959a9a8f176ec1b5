"""Runs one component in this process on given artifacts, without a pipeline, metadata store or cache."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def run_component(component: Callable[..., Any], *, into: str | Path, **arguments: Any) -> dict[str, Any]:
    """Run a component's executor as a pipeline would, and return its outputs.

    Args:
        component: the class or function that creates the component: one of TFX, or a custom one.
        into: a folder for the outputs, each in a folder named by its key, which must not exist yet.
        **arguments: the component's arguments; an artifact is wrapped in a channel.

    Returns:
        The output artifacts by key. A value artifact (`String`, `JsonValue`) has its value as `value`.

    Raises:
        FileExistsError: the folder already has an output of that key.
        Exception: whatever the component raises; a gate that refuses raises `GateStopError`.
    """
    from tfx.types.artifact import Artifact
    from tfx.types.channel_utils import as_channel

    made = component(
        **{
            name: as_channel([each]) if isinstance(each, Artifact) else each
            for name, each in arguments.items()
        }
    )
    inputs = {key: _read(list(channel.get())) for key, channel in made.spec.inputs.items()}
    outputs = {key: _place(channel.type(), Path(into, key)) for key, channel in made.spec.outputs.items()}
    executor = made.executor_spec.executor_class
    context = executor.Context(tmp_dir=str(Path(into, ".tmp")), unique_id=made.id)
    executor(context).Do(
        inputs, {key: [each] for key, each in outputs.items()}, dict(made.spec.exec_properties)
    )
    return outputs


def _read(artifacts: list[Any]) -> list[Any]:
    from tfx.types.value_artifact import ValueArtifact

    for each in artifacts:
        if isinstance(each, ValueArtifact):
            each.read()
    return artifacts


def _place(artifact: Any, folder: Path) -> Any:
    """Set an output's URI as the launcher does: a folder, or a file in it for a value artifact."""
    from tfx.types.value_artifact import ValueArtifact

    folder.mkdir(parents=True)
    artifact.uri = str(folder / "value" if isinstance(artifact, ValueArtifact) else folder)
    return artifact
