"""The entry point of a task's container: `python -m slipway.pipeline.cloud.container.task ARGUMENTS`.

Imports TFX. It is TFX's own entry point with six changes:

- TFX names the model of a blessing only if its own Evaluator issues it. Here the model is named for every
  blessing; otherwise the next run would find no baseline.
- TFX passes gs:// addresses to our function components, which take files. Here they get files.
- TFX passes lists and mappings to function components as text. Here they get what the function declares.
- TFX imports an artifact's class by the name of its type. Existing stores name our types `schemas...`; here
  they are imported from `slipway.schemas`.
- A job on Dataflow that still runs when the task is ended, or fails, is cancelled.
- An error that a user can fix ends in two lines and the command line's exit code, not in a traceback.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from slipway.components.errors import GateStopError, SlipwayError
from slipway.components.large_imports import large_imports
from slipway.pipeline.cloud.container.dataflow_jobs import ended_with_the_task
from slipway.pipeline.cloud.container.failure import write_failure_file
from slipway.pipeline.exit_codes import FAILED, GATE_STOPPED
from slipway.pipeline.runs.record import OVERRIDES, WHY
from slipway.pipeline.terminal.printable import say

with large_imports(keep=True):  # the process is the task's own
    from absl import app  # type: ignore[import-untyped]
    from tfx.dsl.component.experimental.json_compat import is_json_compatible
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_entrypoint_utils as entrypoint
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor as executor
    from tfx.types.standard_artifacts import ModelBlessing
    from tfx.utils import import_utils

    from slipway.pipeline.cloud.container.local_files import local_files
    from slipway.schemas import artifacts as our_types

_OURS = "slipway.components."

_Outputs = Mapping[str, Sequence[Any]]
_translate = entrypoint.translate_executor_output
_parse = entrypoint.parse_execution_properties
_class_path = entrypoint._retrieve_class_path
_MODEL_IDS = ("current_model_id", "baseline_model_id")


def name_models(outputs: _Outputs, name_from_id: Mapping[int, str]) -> None:
    """Replace TFX's numbers of models with the service's names in the blessings among the outputs."""
    for artifacts in outputs.values():
        for artifact in artifacts:
            if isinstance(artifact, ModelBlessing):
                for key in _MODEL_IDS:
                    value = artifact.mlmd_artifact.custom_properties.get(key)
                    if value is not None and value.int_value in name_from_id:
                        artifact.set_string_custom_property(key, name_from_id[value.int_value])


def decode_parameters(parameters: Mapping[str, object], executor_class: type) -> dict[str, object]:
    """Parse the parameters that a function component declares as lists or mappings.

    Args:
        parameters: the parameters by name; lists and mappings are JSON text.
    """
    function = getattr(executor_class, "_FUNCTION", None)
    declared = {
        name: getattr(kind, "type", None) for name, kind in getattr(function, "__annotations__", {}).items()
    }
    return {
        name: json.loads(value)
        if isinstance(value, str) and is_json_compatible(declared.get(name))
        else value
        for name, value in parameters.items()
    }


def _with_local_files(do: Callable[..., Any]) -> Callable[..., Any]:
    def do_with_local_files(self: Any, inputs: _Outputs, outputs: _Outputs, parameters: Any) -> Any:
        with local_files(inputs, outputs):
            return do(self, inputs, outputs, parameters)

    return do_with_local_files


def _with_names(outputs: _Outputs, name_from_id: Mapping[int, str]) -> Any:
    name_models(outputs, name_from_id)
    return _translate(outputs, name_from_id)


def _passed_by(error: SlipwayError) -> str:
    """Return a hint that names the `cloud_runner.py` option that passes a stopped gate; else empty."""
    name = error.verdict.get("override") if isinstance(error, GateStopError) else None
    return f'submitted with {OVERRIDES[name]} "{WHY}" it passes, on the record' if name else ""


def class_path(kind: Any) -> str:
    """Return the dotted path of an artifact's class.

    Args:
        kind: the artifact's type, as in a job of Kubeflow Pipelines.
    """
    path: str = _class_path(kind)
    package, _, name = path.rpartition(".")
    return f"slipway.{path}" if package == "schemas" and hasattr(our_types, name) else path


def find_our_types() -> None:
    """Make TFX import the classes of our artifacts by the paths that `class_path` returns."""
    entrypoint._retrieve_class_path = class_path


def main(parsed: Any) -> None:
    """Run one executor.

    Args:
        parsed: the flags, as TFX's entry point parses them.

    Raises:
        SystemExit: with code 3 if a gate stopped, 1 if a component failed; the reason is printed on stderr.
    """
    executor_class = import_utils.import_class_by_path(parsed[0].executor_class_path)
    if hasattr(executor_class, "_FUNCTION") and executor_class.__module__.startswith(_OURS):
        executor_class.Do = _with_local_files(executor_class.Do)
    entrypoint.translate_executor_output = _with_names
    find_our_types()
    entrypoint.parse_execution_properties = lambda *given: decode_parameters(_parse(*given), executor_class)
    with exit_on_known_errors(), ended_with_the_task(parsed[1]):
        executor.main(parsed)


@contextmanager
def exit_on_known_errors() -> Iterator[None]:
    """End the process with a readable message on an error that a user can act on.

    Raises:
        SystemExit: as `main`.
    """
    try:
        yield
    except SlipwayError as error:
        lines = error.verdict.get("lines", ()) if isinstance(error, GateStopError) else ()
        write_failure_file(error)
        say(f"error: {error.message}", *lines)
        if hint := error.hint or _passed_by(error):
            say(f"hint: {hint}")
        raise SystemExit(GATE_STOPPED if isinstance(error, GateStopError) else FAILED) from error


if __name__ == "__main__":
    app.run(main, flags_parser=executor._parse_flags)
