"""Makes the modules beside a `module_file` importable where nodes run, as TFX's runners do. Imports TFX."""

from pathlib import Path
from typing import Any

from tfx.components.util.udf_utils import UserModuleFilePipDependency
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.orchestration.pipeline import Pipeline

from slipway.components.source_closure import source_closure


def package_user_modules(pipeline: Pipeline) -> dict[str, str]:
    """Package the modules that a component's `module_file` imports from its folder; change the components.

    TFX puts them into a wheel under the pipeline's root, whose name depends on the content of all modules
    in that folder: an edit changes a setting of the node. The wheel holds no packages: what the modules
    import from these, and from elsewhere, is found when they run. A `module_file` that needs no wheel is
    used as it is.

    Returns:
        Node id -> its `module_file`, for nodes whose settings name the wheel instead.

    Raises:
        ValueError: there is no such file.
        RuntimeError: the wheel cannot be built.
    """
    packed: dict[str, str] = {}
    for component in pipeline.components:
        if isinstance(component, BaseComponent):
            wanted = getattr(component, "_pip_dependencies", [])
            kept = component._pip_dependencies = [each for each in wanted if not _is_alone(each)]
            packed.update((component.id, file) for each in kept if (file := _module_file(each)))
            component._resolve_pip_dependencies(pipeline.pipeline_info.pipeline_root)
    return packed


def _module_file(dependency: Any) -> str:
    """Return the file that a dependency is made from; empty if there is none or it is not a `module_file`."""
    if not isinstance(dependency, UserModuleFilePipDependency):
        return ""
    name = dependency.component.spec.exec_properties.get(dependency.module_file_key)
    return str(Path(name).absolute()) if isinstance(name, str) and Path(name).is_file() else ""


def _is_alone(dependency: Any) -> bool:
    """Return True if the dependency is a `module_file` that imports nothing from its own folder."""
    if not (name := _module_file(dependency)):
        return False
    file = Path(name)
    return set(source_closure([file.stem], root=file.parent)) <= {file.name}
