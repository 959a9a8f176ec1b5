"""Finds a user's own TFX pipeline, named as `module:function`, and builds it if it is a function."""

import importlib.util
import inspect
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from slipway import OtherNameError
from slipway.components.nearest import nearest
from slipway.components.project import OWN_FOLDER, PROJECT_ROOT
from slipway.pipeline.engine.tfx.arguments import arguments
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.run_target import IrRun, ModuleRun, Target

if TYPE_CHECKING:
    from tfx.orchestration.pipeline import Pipeline

_Value = TypeVar("_Value")
OUR_NAMES = ("slipway", "local_runner", "cloud_runner")
"""Top-level modules that belong to Slipway in the processes that build and run a pipeline."""


def check_target(target: Target) -> None:
    """Make the user's modules importable; reject a wrong name before TFX is imported, which takes seconds.

    Raises:
        UsageError: there is no such module, or nothing of that name in it.
    """
    if isinstance(target, ModuleRun):
        find(target.pipeline, folder=target.folder)
    elif isinstance(target, IrRun):
        _import_before_ours(target.import_from)


def load_pipeline(
    target: ModuleRun, parameters: Mapping[str, str], *, offered: Mapping[str, str] | None = None
) -> tuple["Pipeline", dict[str, str]]:
    """Find a module's pipeline, or build it. Imports TFX: runs in the fork server only.

    Args:
        parameters: values by name, for the arguments that the function takes; see `arguments`.
        offered: as in `built`.

    Returns:
        The pipeline, and the parameters that the function did not take.

    Raises:
        UsageError: the module or the function does not exist, lacks arguments, or gives no pipeline.
    """
    found = find(target.pipeline, folder=target.folder)
    name, output = target.pipeline, target.output
    return built(found, name=name, output=output, parameters=parameters, offered=offered)


def built(
    found: Any,
    *,
    name: str,
    output: Path,
    parameters: Mapping[str, _Value],
    offered: Mapping[str, _Value] | None = None,
) -> tuple["Pipeline", dict[str, _Value]]:
    """Return `found` if it is a pipeline, otherwise call it to build one. Imports TFX.

    Args:
        name: the `module:function`, or the function's own name.
        parameters: values by name, for the arguments that the function takes; see `arguments`.
        offered: further values, which nobody asked for: a function that has no such arguments goes without.

    Returns:
        As `load_pipeline`.

    Raises:
        UsageError: the function lacks arguments, the result is not a pipeline, or the pipeline holds
            another pipeline or an exit handler, has outputs, or is asynchronous.
    """
    from tfx.orchestration.kubeflow.decorators import FinalStatusStr
    from tfx.orchestration.pipeline import ExecutionMode, Pipeline

    pipeline, rest = found, dict(parameters)
    if callable(found) and not isinstance(found, Pipeline):
        taken = arguments(found, name=name, output=output, values={**(offered or {}), **parameters})
        rest = {key: value for key, value in parameters.items() if key not in taken}
        pipeline = found(**taken)
        _refuse_misspelt(rest, pipeline, name=name, known=[*inspect.signature(found).parameters])
    if not isinstance(pipeline, Pipeline):
        raise UsageError(f"{name}: gave a {type(pipeline).__name__}, not a TFX Pipeline")
    if not pipeline.components:
        raise UsageError(f"{name}: gave a pipeline without components.")
    if pipeline.execution_mode != ExecutionMode.SYNC:
        raise UsageError(
            f"{name}: its execution_mode is ASYNC, in which what nodes make belongs to no run.",
            hint="leave execution_mode out",
        )
    if inner := [node.id for node in pipeline.components if isinstance(node, Pipeline)]:
        raise UsageError(
            f"{name}: holds a pipeline inside a pipeline ({', '.join(inner)}), which cannot be run here.",
            hint="put its components into the outer pipeline",
        )
    if pipeline.outputs:
        raise UsageError(
            f"{name}: has outputs, as a pipeline inside a pipeline, whose last node TFX cannot run here.",
            hint="leave outputs out; a resolver finds in a later run what its nodes made",
        )
    if handlers := [
        node.id
        for node in pipeline.components
        if any(isinstance(value, FinalStatusStr) for value in node.exec_properties.values())
    ]:
        raise UsageError(
            f"{name}: {', '.join(handlers)} is an exit handler. Among a pipeline's components it would run "
            "as any other node, before the others have ended.",
            hint="leave it out of the components; TFX's runner for Vertex AI takes it by set_exit_handler",
        )
    return pipeline, rest


def _refuse_misspelt(rest: Collection[str], pipeline: Any, *, name: str, known: Collection[str]) -> None:
    """Refuse names that are no runtime parameters, if they are almost those of the function's arguments."""
    from tfx.orchestration.data_types import RuntimeParameter

    values = [
        value for node in getattr(pipeline, "components", ()) for value in node.exec_properties.values()
    ]
    declared = {value.name for value in values if isinstance(value, RuntimeParameter)}
    for key in rest:
        if key not in declared and (near := nearest(key, known)):
            raise UsageError(f"--set {key}: {name} has no such argument; nearest: {near}")


def find(name: str, *, folder: str) -> Any:
    """Return the object named by `module:attribute`.

    Args:
        name: the module's dotted path, a colon, the name in it.
        folder: the folder to import from, before the project's own.

    Raises:
        UsageError: there is no such module, or nothing of that name in it, or the module is Slipway's own.
    """
    module_name, _, attribute = name.partition(":")
    if not attribute:
        raise UsageError(
            f"--pipeline {name}: must be MODULE:FUNCTION, e.g. my_project.pipeline:create_pipeline"
        )
    if _is_ours(module_name):
        raise _hidden(f"--pipeline {name}", module_name, folder)
    _import_before_ours([folder])
    try:
        module = importlib.import_module(module_name)
    except OtherNameError as error:
        raise UsageError(f"--pipeline {name}: {error}") from error
    except ImportError as error:
        if error.name is not None and _is_ours(error.name) and _yours(error.name, folder):
            raise _hidden(f"--pipeline {name}: it imports {error.name}", error.name, folder) from error
        # An import that fails inside the user's module is a different error.
        is_it = error.name is not None and f"{module_name}.".startswith(f"{error.name}.")
        if not isinstance(error, ModuleNotFoundError) or not is_it:
            raise
        hint = f"name it as for `python -m`, dots, no .py; looked in {folder} as well"
        raise UsageError(f"--pipeline {name}: no module {error.name!r}", hint=hint) from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise UsageError(f"--pipeline {name}: {module_name} has no {attribute!r}") from None


def _import_before_ours(folders: Iterable[str]) -> None:
    """Put the users' folders on `sys.path` before ours, whose package names they may also use.

    They come after the standard library and installed packages: a `profile.py` beside a pipeline must not
    replace Python's, which Beam imports.
    """
    ours = str(PROJECT_ROOT)
    others = [entry for entry in sys.path if entry != ours]
    sys.path[:] = dict.fromkeys([*others, *folders, ours])


def _is_ours(module_name: str) -> bool:
    """Return True if the module imported under that name is Slipway's own."""
    top = module_name.partition(".")[0]
    spec = importlib.util.find_spec(top) if top in OUR_NAMES else None
    return spec is not None and Path(spec.origin or "").is_relative_to(OWN_FOLDER)


def _yours(module_name: str, folder: str) -> Path | None:
    """Return the user's own file or folder of that top-level name; None if there is none."""
    own = Path(folder, module_name.partition(".")[0])
    return next((p for p in (own, own.with_suffix(".py")) if p.exists() and p.parent != OWN_FOLDER), None)


def _hidden(what: str, module_name: str, folder: str) -> UsageError:
    top = module_name.partition(".")[0]
    yours = _yours(module_name, folder)
    hides = f" and hides {yours}" if yours else ""
    return UsageError(
        f"{what}, but {top} is Slipway's own{hides}.",
        hint=f"{'rename yours' if yours else 'name your own module'}; taken are {', '.join(OUR_NAMES)}",
    )
