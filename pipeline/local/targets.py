"""What to run: a workload of this project, or any TFX pipeline named as `module:function`."""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import UsageError


def check_target(target: Mapping[str, Any]) -> None:
    """Makes the user's modules importable; refuses a wrong name before TFX is imported, which takes seconds.

    Args:
        target: as in `load_pipeline`, or `{"ir": file, "import_from": folders, "output": folder}`.

    Raises:
        UsageError: there is no such module, or nothing of that name in it.
    """
    if "pipeline" in target:
        find(target["pipeline"], folder=target["folder"])
    sys.path += [folder for folder in target.get("import_from", ()) if folder not in sys.path]


def load_pipeline(target: Mapping[str, Any], parameters: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """Builds the pipeline. Imports TFX, unless there is nothing to build: runs in the fork server only.

    Args:
        target: `{"config": JSON of a WorkloadConfig, "source": {"directory", "patterns"}, "output": folder,
            "overrides": {name: reason}, "today": date or empty}`
            or `{"pipeline": "module:function", "folder": to import it from, "output": folder}`.
        parameters: values by name, for the arguments that the function takes; see `arguments`.

    Returns:
        A `tfx.orchestration.pipeline.Pipeline`, and the parameters that the function did not take.

    Raises:
        UsageError: the module or the function does not exist, lacks arguments, or gives no pipeline.
    """
    if "pipeline" in target:
        found = find(target["pipeline"], folder=target["folder"])
        output = Path(target["output"])
        return built(found, name=target["pipeline"], output=output, parameters=parameters)
    from pipeline.config import WorkloadConfig
    from pipeline.dag import build_pipeline

    pipeline = build_pipeline(
        config=WorkloadConfig.model_validate_json(target["config"]),
        data=(target["source"]["directory"], target["source"]["patterns"]),
        output=Path(target["output"]),
        overrides=target["overrides"],
        today=target["today"],
    )
    return pipeline, dict(parameters)


def built(
    found: Any, *, name: str, output: Path, parameters: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The pipeline that `found` is, or returns when it is called. Imports TFX.

    Args:
        found: a pipeline or a function.
        name: its `module:function`, or the function's own.
        output: the folder of the run.
        parameters: values by name, for the arguments that the function takes; see `arguments`.

    Returns:
        As `load_pipeline`.

    Raises:
        UsageError: the function lacks arguments, or it is, or gives, no pipeline.
    """
    from tfx.orchestration.pipeline import Pipeline

    pipeline, rest = found, dict(parameters)
    if callable(found) and not isinstance(found, Pipeline):
        taken = arguments(found, name=name, output=output, values=parameters)
        rest = {key: value for key, value in parameters.items() if key not in taken}
        pipeline = found(**taken)
    if not isinstance(pipeline, Pipeline):
        raise UsageError(f"{name}: gave a {type(pipeline).__name__}, not a TFX Pipeline")
    return pipeline, rest


def find(name: str, *, folder: str) -> Any:
    """What stands under `module:attribute`.

    Args:
        name: the module's dotted path, a colon, the name in it.
        folder: to import from, after all that Python looks through anyway.

    Raises:
        UsageError: there is no such module, or nothing of that name in it.
    """
    module_name, _, attribute = name.partition(":")
    if not attribute:
        raise UsageError(
            f"--pipeline {name}: must be MODULE:FUNCTION, e.g. my_project.pipeline:create_pipeline"
        )
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A module that the user's own module lacks is another matter.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        hint = f"name it as for `python -m`, dots, no .py; looked in {folder} as well"
        raise UsageError(f"--pipeline {name}: no module {error.name!r}", hint=hint) from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise UsageError(f"--pipeline {name}: {module_name} has no {attribute!r}") from None


def arguments(
    function: Callable[..., Any], *, name: str, output: Path, values: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments to call a pipeline's function with: what `--set` gives, and what the engine knows itself.

    The latter are those that TFX's examples ask for: `pipeline_name`, `pipeline_root`, `metadata_path` and
    `beam_pipeline_args` (none; `--beam` adds some).

    Args:
        function: returns a pipeline.
        name: its `module:function`, or the function's own; what stands before the colon names the pipeline.
        output: the folder of the run.
        values: by name; of those that are text, numbers and yes or no are read where the annotation says so.

    Raises:
        UsageError: a value is not of the annotated type, or an argument without a default has none.
    """
    short = name.partition(":")[0].rpartition(".")[2]
    known: dict[str, Any] = {
        "pipeline_name": short,
        "pipeline_root": str(output / "artifacts" / short),
        "metadata_path": str(output / "metadata.db"),
        "beam_pipeline_args": [],
    }
    taken: dict[str, Any] = {}
    missing = []
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if key in values:
            value = values[key]
            taken[key] = _typed(key, value, parameter.annotation) if isinstance(value, str) else value
        elif parameter.default is parameter.empty:
            if key in known:
                taken[key] = known[key]
            else:
                missing.append(key)
    if missing:
        raise UsageError(
            f"{name}: the function needs {', '.join(missing)}.",
            hint="give each with --set NAME=VALUE",
        )
    return taken


def _typed(key: str, text: str, annotation: Any) -> Any:
    words = {"true": True, "yes": True, "false": False, "no": False}
    try:
        if annotation in (bool, "bool"):
            return words[text.lower()]
        if annotation in (int, "int"):
            return int(text)
        if annotation in (float, "float"):
            return float(text)
    except (KeyError, ValueError):
        kind = annotation if isinstance(annotation, str) else annotation.__name__
        raise UsageError(f"--set {key}={text}: must be of type {kind}.") from None
    return text
