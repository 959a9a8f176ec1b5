"""What to run: a workload of this project, or any TFX pipeline named as `module:function`."""

import importlib
import sys
from pathlib import Path
from typing import Any

from pipeline.errors import UsageError


def load_pipeline(target: dict[str, Any]) -> Any:
    """Builds the pipeline. Imports TFX: runs in the fork server only.

    Args:
        target: `{"config": JSON of a WorkloadConfig, "source": {"directory", "pattern"}, "output": folder}`
            or `{"pipeline": "module:function", "folder": to import it from, "output": folder}`.

    Returns:
        A `tfx.orchestration.pipeline.Pipeline`.

    Raises:
        UsageError: the module or the function does not exist, or gives no pipeline.
    """
    if "pipeline" in target:
        return _named_pipeline(target["pipeline"], folder=target["folder"])
    from pipeline.config import WorkloadConfig
    from pipeline.dag import build_pipeline

    return build_pipeline(
        config=WorkloadConfig.model_validate_json(target["config"]),
        data=(target["source"]["directory"], target["source"]["pattern"]),
        output=Path(target["output"]),
    )


def _named_pipeline(name: str, *, folder: str) -> Any:
    from tfx.orchestration.pipeline import Pipeline

    module_name, _, attribute = name.partition(":")
    if not attribute:
        raise UsageError(
            f"--pipeline {name}: must be MODULE:FUNCTION, e.g. my_project.pipeline:create_pipeline"
        )
    sys.path.append(folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and module_name.startswith(error.name):
            raise UsageError(
                f"--pipeline {name}: no module {error.name!r}",
                hint="name it as for `python -m`, dots, no .py",
            ) from error
        raise
    found = getattr(module, attribute, None)
    if found is None:
        raise UsageError(f"--pipeline {name}: {module_name} has no {attribute!r}")
    pipeline = found() if callable(found) and not isinstance(found, Pipeline) else found
    if not isinstance(pipeline, Pipeline):
        raise UsageError(f"--pipeline {name}: gave a {type(pipeline).__name__}, not a TFX Pipeline")
    return pipeline
