"""The inputs of a task, as the service gives them: its ExecutorInput, and its command filled in.

Pure. The names and forms are those of ml_pipelines.ExecutorInput in kfp's pipeline_spec.proto.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.job import component_of, tasks_of, title_of
from slipway.pipeline.cloud.pipeline_job import PipelineSpec

Artifact = dict[str, Any]
Outputs = Mapping[str, Mapping[str, Any]]

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


def check_wiring(spec: PipelineSpec) -> Iterator[str]:
    """Reports what the service would reject at submission, one line each: names and types that do not fit."""
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
                yield f"{name}.{key} comes from {producer}.{given}, which {producer} does not put out"
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
    spec: PipelineSpec, name: str, *, done: Outputs, parameters: Mapping[str, Any], folder: str
) -> dict[str, Any]:
    """The ExecutorInput of a task.

    Args:
        spec: the pipeline.
        name: the task.
        done: what the tasks before it put out: `{task: {"artifacts": {key: [...]}, "parameters": {...}}}`;
            for an exit handler also `{"tfx-dag": {"status": a PipelineTaskFinalStatus}}`.
        parameters: the job's runtime parameters.
        folder: the task's own folder, for its outputs; its last part is taken for an id.

    Raises:
        ComponentError: a runtime parameter has no value.
    """
    task, component = tasks_of(spec)[name], component_of(spec, name)
    inputs = task.get("inputs", {})
    artifacts = {
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


def _new(uri: str, entry: Mapping[str, Any]) -> Artifact:
    # The service's form of the name; TFX takes a number for the artifact from it.
    name = f"projects/rehearsal/locations/here/metadataStores/default/artifacts/{uri}"
    metadata = dict(entry.get("metadata", {}))
    return {"name": name, "uri": uri, "type": entry["artifactType"], "metadata": metadata}


def _output(done: Outputs, source: Mapping[str, Any]) -> list[Artifact]:
    return list(done[source["producerTask"]]["artifacts"].get(source["outputArtifactKey"], ()))


def _value(
    name: str, key: str, source: Mapping[str, Any], done: Outputs, parameters: Mapping[str, Any]
) -> Any:
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
                f"{output['producerTask']} put out no parameter {output['outputParameterKey']!r}"
            )
        return made[output["outputParameterKey"]]
    if "taskFinalStatus" in source:
        return json.dumps(done[source["taskFinalStatus"]["producerTask"]]["status"])
    return source["runtimeValue"].get("constant")


def filled(text: str, given: Mapping[str, Any]) -> str:
    """A word of a command, or a resolver's filter, with its placeholders filled in.

    Args:
        text: with `{{$}}` for the whole ExecutorInput, or `{{$.inputs...}}` for a part of it.
        given: the ExecutorInput.

    Raises:
        ComponentError: a placeholder names what is not there.
    """
    return _PLACEHOLDER.sub(lambda match: _filled(match, given), text)


def _filled(match: re.Match[str], given: Mapping[str, Any]) -> str:
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
            artifact = given[side]["artifacts"][key]["artifacts"][0]
            return str(artifact[attribute] if attribute else artifact["metadata"][name])
    except (KeyError, IndexError):
        raise ComponentError(f"the placeholder {match[0]} names a value that the task does not get") from None
    raise ComponentError(f"the placeholder {match[0]} cannot be filled in here")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def fold(given: dict[str, Any], output: Mapping[str, Any]) -> None:
    """Applies an executor's or driver's output file; `given` is changed.

    Args:
        given: the ExecutorInput.
        output: an ExecutorOutput: metadata of artifacts; parameters, which a driver hands to its executor.
    """
    for key, entry in output.get("artifacts", {}).items():
        for ours, theirs in zip(
            given["outputs"]["artifacts"][key]["artifacts"], entry["artifacts"], strict=False
        ):
            ours["metadata"].update(theirs.get("metadata", {}))
            ours["uri"] = theirs.get("uri", ours["uri"])
    given["inputs"]["parameterValues"].update(output.get("parameterValues", {}))


def command_of(container: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """The command line of a container, or of its driver, with the placeholders filled in."""
    words: Sequence[str] = [*container.get("command", ()), *container.get("args", ())]
    return [filled(word, given) for word in words]
