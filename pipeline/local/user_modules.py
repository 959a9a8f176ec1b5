"""Makes the modules beside a `module_file` importable where nodes run, as TFX's runners do. Imports TFX."""

from pathlib import Path
from typing import Any

from tfx.components.util.udf_utils import UserModuleFilePipDependency
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.orchestration.pipeline import Pipeline

from pipeline.source_closure import source_closure


def package_user_modules(pipeline: Pipeline) -> None:
    """Packs the modules that a component's `module_file` imports from beside it; changes the components.

    TFX puts them into a wheel under the pipeline's root, named by the content of all modules in that folder:
    an edit is another setting of the node. A `module_file` that needs none of them is run as it is.

    Args:
        pipeline: not compiled yet.

    Raises:
        ValueError: there is no such file.
        RuntimeError: the wheel cannot be built.
    """
    for component in pipeline.components:
        if isinstance(component, BaseComponent):
            wanted = getattr(component, "_pip_dependencies", [])
            component._pip_dependencies = [each for each in wanted if not _is_alone(each)]
            component._resolve_pip_dependencies(pipeline.pipeline_info.pipeline_root)


def _is_alone(dependency: Any) -> bool:
    """Whether it is a `module_file` that imports nothing from its own folder."""
    if not isinstance(dependency, UserModuleFilePipDependency):
        return False
    name = dependency.component.spec.exec_properties.get(dependency.module_file_key)
    if not isinstance(name, str) or not Path(name).is_file():
        return False
    file = Path(name).absolute()
    return set(source_closure([file.stem], root=file.parent)) <= {file.name}
