"""Builds a task's inputs as a service does: its ExecutorInput, and its command with placeholders filled in.

Pure. The names and forms are those of ml_pipelines.ExecutorInput in kfp's pipeline_spec.proto.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.complete_job import component_of, tasks_of, title_of
from slipway.pipeline.cloud.pipeline_job import (
    ArtifactSpec,
    ArtifactTypeSchema,
    Exec,
    InputParameterSpec,
    PipelineContainerSpec,
    PipelineSpec,
    TaskOutputArtifactSpec,
)

_PLACEHOLDER = re.compile(r"\{\{\$(.*?)\}\}", re.DOTALL)
_PARAMETER = re.compile(r"\.(inputs|outputs)\.parameters\['([^']+)'\](\.output_file)?")
_ARTIFACT = re.compile(r"\.(inputs|outputs)\.artifacts\['([^']+)'\](?:\.(uri|name)|\.metadata\['([^']+)'\])")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "STRING": (str,),
    "NUMBER_INTEGER": (int, float),
    "NUMBER_DOUBLE": (int, float),
    "BOOLEAN": (bool,),
    "LIST": (list,),
    "STRUCT": (dict,),
}


class RuntimeArtifact(TypedDict):
    """An artifact of a task; only Kubeflow Pipelines without ML Metadata has `artifactId`."""

    name: str
    artifactId: NotRequired[str]
    uri: str
    type: ArtifactTypeSchema
    metadata: dict[str, Any]


class ArtifactList(TypedDict):
    """The artifacts of one key."""

    artifacts: list[RuntimeArtifact]


class OutputParameter(TypedDict):
    """The file into which a parameter's value is written."""

    outputFile: str


class Inputs(TypedDict):
    """The inputs of a task, by key."""

    artifacts: dict[str, ArtifactList]
    parameterValues: dict[str, Any]


class Outputs(TypedDict):
    """The places for a task's outputs, by key; `outputFile` is for its `ExecutorOutput`."""

    artifacts: dict[str, ArtifactList]
    parameters: dict[str, OutputParameter]
    outputFile: str


class ExecutorInput(TypedDict):
    """The inputs of a task, and the places for its outputs."""

    inputs: Inputs
    outputs: Outputs


class MadeArtifact(TypedDict, total=False):
    """The fields of an artifact that an executor sets."""

    uri: str
    metadata: dict[str, object]


class MadeArtifacts(TypedDict):
    """The artifacts of one key."""

    artifacts: list[MadeArtifact]


class ExecutorOutput(TypedDict, total=False):
    """The document that an executor writes, or a driver for its executor, by key."""

    artifacts: dict[str, MadeArtifacts]
    parameterValues: dict[str, object]


class Status(TypedDict, total=False):
    """An error, as google.rpc.Status; empty if the service does not say which."""

    code: int
    message: str


class PipelineTaskFinalStatus(TypedDict):
    """The outcome of all tasks, as an exit handler gets it."""

    state: str
    pipelineJobResourceName: str
    pipelineTaskName: str
    error: NotRequired[Status]


class TaskOutputs(TypedDict):
    """The outputs of a finished task, by key; only the task that wraps all others has a `status`."""

    artifacts: Mapping[str, list[RuntimeArtifact]]
    parameters: Mapping[str, object]
    status: NotRequired[PipelineTaskFinalStatus]


def check_wiring(spec: PipelineSpec) -> Iterator[str]:
    """Yield a line for each mismatch of names or types for which the service would reject the job."""
    tasks = tasks_of(spec)
    for name, task in tasks.items():
        declared = component_of(spec, name).get("inputDefinitions", {})
        for key, source in task.get("inputs", {}).get("artifacts", {}).items():
            output = source["taskOutputArtifact"]
            producer, given = output["producerTask"], output["outputArtifactKey"]
            if producer not in tasks:
                yield f"{name}.{key} comes from {producer}, which is not a task"
                continue
            made = component_of(spec, producer).get("outputDefinitions", {}).get("artifacts", {})
            wanted = declared.get("artifacts", {}).get(key)
            if given not in made:
                yield f"{name}.{key} comes from {producer}.{given}, which {producer} does not produce"
            elif wanted and title_of(wanted["artifactType"]) != title_of(made[given]["artifactType"]):
                yield (
                    f"{name}.{key} is a {title_of(wanted['artifactType'])}, and {producer}.{given} "
                    f"a {title_of(made[given]['artifactType'])}"
                )
        for key, value in task.get("inputs", {}).get("parameters", {}).items():
            kind = declared.get("parameters", {}).get(key, {}).get("parameterType", "")
            constant = value.get("runtimeValue", {}).get("constant")
            if kind in _TYPES and constant is not None and not isinstance(constant, _TYPES[kind]):
                yield f"{name}.{key} is a {kind}, and its value {constant!r} is not"
            producer = value.get("taskOutputParameter", {}).get("producerTask", "")
            if producer and producer not in tasks:
                yield f"{name}.{key} comes from {producer}, which is not a task"


def executor_input(
    spec: PipelineSpec,
    name: str,
    *,
    done: Mapping[str, TaskOutputs],
    parameters: Mapping[str, object],
    folder: str,
) -> ExecutorInput:
    """Return the ExecutorInput of a task.

    Args:
        done: the outputs of the tasks before it, by task; for an exit handler, also the entry `tfx-dag`.
        folder: the task's own folder, for its outputs; its last part is used as an id.

    Raises:
        ComponentError: a runtime parameter has no value.
    """
    task, component = tasks_of(spec)[name], component_of(spec, name)
    inputs = task.get("inputs", {})
    artifacts: dict[str, ArtifactList] = {
        key: {"artifacts": _output(done, source["taskOutputArtifact"])}
        for key, source in inputs.get("artifacts", {}).items()
    }
    values = {
        key: _value(name, key, source, done, parameters)
        for key, source in inputs.get("parameters", {}).items()
    }
    made = component.get("outputDefinitions", {})
    return {
        "inputs": {"artifacts": artifacts, "parameterValues": values},
        "outputs": {
            "artifacts": {
                key: {"artifacts": [_new(f"{folder}/{key}", entry)]}
                for key, entry in made.get("artifacts", {}).items()
            },
            "parameters": {
                key: {"outputFile": f"{folder}/parameters/{key}"} for key in made.get("parameters", {})
            },
            "outputFile": f"{folder}/executor_output.json",
        },
    }


def _new(uri: str, entry: ArtifactSpec) -> RuntimeArtifact:
    # The service's form of a name, from which TFX derives a number for the artifact.
    name = f"projects/rehearsal/locations/here/metadataStores/default/artifacts/{uri}"
    metadata = dict(entry.get("metadata", {}))
    return {"name": name, "uri": uri, "type": entry["artifactType"], "metadata": metadata}


def _output(done: Mapping[str, TaskOutputs], source: TaskOutputArtifactSpec) -> list[RuntimeArtifact]:
    return list(done[source["producerTask"]]["artifacts"].get(source["outputArtifactKey"], ()))


def _value(
    name: str,
    key: str,
    source: InputParameterSpec,
    done: Mapping[str, TaskOutputs],
    parameters: Mapping[str, object],
) -> object:
    if "componentInputParameter" in source:
        if source["componentInputParameter"] not in parameters:
            raise ComponentError(
                f"the runtime parameter {source['componentInputParameter']!r} has no value ({name}.{key})",
                hint="TFX drops a parameter's default when it compiles; give a value",
            )
        return parameters[source["componentInputParameter"]]
    if "taskOutputParameter" in source:
        output = source["taskOutputParameter"]
        made = done[output["producerTask"]]["parameters"]
        if output["outputParameterKey"] not in made:
            raise ComponentError(
                f"{output['producerTask']} produced no parameter {output['outputParameterKey']!r}"
            )
        return made[output["outputParameterKey"]]
    if "taskFinalStatus" in source:
        return json.dumps(done[source["taskFinalStatus"]["producerTask"]]["status"])
    return source["runtimeValue"].get("constant")


def filled(text: str, given: ExecutorInput) -> str:
    """Fill in the placeholders in a word of a command, or in a resolver's filter.

    Args:
        text: with `{{$}}` for the whole ExecutorInput, or `{{$.inputs...}}` for a part of it.

    Raises:
        ComponentError: a placeholder names a value that does not exist.
    """
    return _PLACEHOLDER.sub(lambda match: _filled(match, given), text)


def _filled(match: re.Match[str], given: ExecutorInput) -> str:
    path = match[1]
    if not path:
        return json.dumps(given)
    try:
        if found := _PARAMETER.fullmatch(path):
            side, key, file = found.groups()
            if side == "inputs":
                return _text(given["inputs"]["parameterValues"][key])
            if file:
                return str(given["outputs"]["parameters"][key]["outputFile"])
        elif found := _ARTIFACT.fullmatch(path):
            side, key, attribute, name = found.groups()
            artifacts = (given["inputs"] if side == "inputs" else given["outputs"])["artifacts"]
            artifact = artifacts[key]["artifacts"][0]
            if name:
                return str(artifact["metadata"][name])
            return artifact["uri"] if attribute == "uri" else artifact["name"]
    except (KeyError, IndexError):
        raise ComponentError(f"the placeholder {match[0]} names a value that the task does not get") from None
    raise ComponentError(f"the placeholder {match[0]} cannot be filled in here")


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def apply_executor_output(given: ExecutorInput, output: ExecutorOutput) -> None:
    """Apply an executor's or driver's output file to `given`, which is changed.

    Args:
        output: the metadata of artifacts, and the parameters that a driver passes to its executor.
    """
    for key, entry in output.get("artifacts", {}).items():
        for ours, theirs in zip(
            given["outputs"]["artifacts"][key]["artifacts"], entry["artifacts"], strict=False
        ):
            ours["metadata"].update(theirs.get("metadata", {}))
            ours["uri"] = theirs.get("uri", ours["uri"])
    given["inputs"]["parameterValues"].update(output.get("parameterValues", {}))


def command_of(container: PipelineContainerSpec | Exec, given: ExecutorInput) -> list[str]:
    """Return the command line of a container, or of its driver, with the placeholders filled in."""
    words: Sequence[str] = [*container.get("command", ()), *container.get("args", ())]
    return [filled(word, given) for word in words]
