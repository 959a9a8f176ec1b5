"""Finds the runtime parameters of a compiled pipeline, and checks and sets their values. Imports TFX."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.message import Message
from tfx.dsl.compiler import compiler, constants
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.pipeline import Pipeline
from tfx.orchestration.portable import runtime_parameter_utils
from tfx.proto.orchestration import pipeline_pb2

from slipway.components.nearest import nearest
from slipway.pipeline.errors import UsageError

_Parameter = pipeline_pb2.RuntimeParameter
_TYPES: Mapping[int, tuple[type, str]] = {
    _Parameter.INT: (int, "a whole number"),
    _Parameter.DOUBLE: (float, "a number"),
    _Parameter.STRING: (str, "text"),
}
_VALUES: Mapping[int, str] = {
    _Parameter.INT: "int_value",
    _Parameter.DOUBLE: "double_value",
    _Parameter.STRING: "string_value",
}


def compiled(pipeline: Pipeline) -> pipeline_pb2.Pipeline:
    """Compile a pipeline to TFX's IR, with the defaults that TFX's compiler drops: 0, 0.0 and empty text."""
    ir = compiler.Compiler().compile(pipeline)
    given = (value for node in pipeline.components for value in node.exec_properties.values())
    defaults = {each.name: each.default for each in given if isinstance(each, RuntimeParameter)}
    for parameter in _find(ir):
        default = defaults.get(parameter.name)
        if default is not None and not parameter.HasField("default_value"):
            setattr(parameter.default_value, _VALUES[parameter.type], default)
    return ir


def fill_parameters(ir: pipeline_pb2.Pipeline, *, run_id: str, values: Mapping[str, str]) -> None:
    """Replace the runtime parameters in the IR by their values or defaults.

    Args:
        ir: the compiled pipeline; changed in place.
        run_id: the value of the parameter that TFX itself adds.
        values: the values of the other parameters by name, as text.

    Raises:
        UsageError: a name is not a parameter's, a value has the wrong type, or a parameter has no value.
    """
    declared = {p.name: p for p in _find(ir) if p.name != constants.PIPELINE_RUN_ID_PARAMETER_NAME}
    typed: dict[str, object] = {constants.PIPELINE_RUN_ID_PARAMETER_NAME: run_id}
    for name, text in values.items():
        if name not in declared:
            raise UsageError(
                f"--set {name}: {ir.pipeline_info.id} has no such parameter. {_nearest(name, declared)}"
            )
        convert, words = _TYPES[declared[name].type]
        try:
            typed[name] = convert(text)
        except ValueError:
            raise UsageError(f"--set {name}={text}: must be {words}.") from None
    for name, parameter in declared.items():
        if name not in typed and not parameter.HasField("default_value"):
            raise UsageError(
                f"Parameter {name!r} of {ir.pipeline_info.id} has no default.",
                hint=f"give it with --set {name}=...",
            )
    runtime_parameter_utils.substitute_runtime_parameter(ir, typed)


def _find(message: Message) -> Iterator[Any]:
    if isinstance(message, _Parameter):
        yield message
        return
    for _, value in message.ListFields():
        if isinstance(value, Message):
            yield from _find(value)
        elif isinstance(value, (Mapping, Sequence)) and not isinstance(value, (str, bytes)):
            for item in value.values() if isinstance(value, Mapping) else value:
                if isinstance(item, Message):
                    yield from _find(item)


def _nearest(name: str, declared: Collection[str]) -> str:
    if not declared:
        return "It has none."
    return f"Closest: {nearest(name, declared, similarity=0)!r}."
