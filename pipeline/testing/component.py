"""Runs one component in this process on given artifacts: no pipeline, no metadata store, no cache."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def run_component(component: Callable[..., Any], *, into: str | Path, **arguments: Any) -> dict[str, Any]:
    """Runs a component's executor as a pipeline would, and returns what it made.

    Args:
        component: the class or function that makes the component, of TFX or your own.
        into: a folder for what it writes: each output in a folder of its key, which must not exist yet.
        **arguments: those of the component; an artifact stands for the channel that it would come by.

    Returns:
        Its output artifacts by key. One that is a value (`String`, `JsonValue`) has it as `value`.

    Raises:
        FileExistsError: an output of that key is in the folder already.
        Exception: whatever the component raises; a gate that says no raises `GateStopError`.
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
    """Gives an output its place, as the launcher does: a folder, for a value a file in it."""
    from tfx.types.value_artifact import ValueArtifact

    folder.mkdir(parents=True)
    artifact.uri = str(folder / "value" if isinstance(artifact, ValueArtifact) else folder)
    return artifact
