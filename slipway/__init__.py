"""The name under which everything of this project is imported: `slipway.pipeline`, `slipway.components`.

A checkout links its folders here; a wheel holds them here. So each module has one name in both, and the names
`pipeline`, `components` and `schemas` are left to users, whose projects have them since TFX's templates.

`slipway.run(pipeline)` runs a pipeline from a notebook or a test (docs/embedding.md), and
`slipway.load(workload)` loads the model that it pushed.
"""

import pkgutil
from typing import Any

_PUBLIC = {
    "RunFailedError": "commands.run_from_python",
    "RunResult": "commands.run_from_python",
    "Loaded": "commands.load_from_python",
    "Warm": "engine.processes.warm",
    "load": "commands.load_from_python",
    "run": "commands.run_from_python",
}
__all__ = [
    "Loaded",
    "OtherNameError",
    "RunFailedError",
    "RunResult",
    "Warm",
    "load",
    "refuse_other_name",
    "run",
]


def __getattr__(name: str) -> Any:
    """Import what is public when it is asked for: a command that only lists runs needs none of it."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # No import statement: every node imports this module, and would depend on all that it imports.
    return pkgutil.resolve_name(f"{__name__}.pipeline.{_PUBLIC[name]}:{name}")


class OtherNameError(ImportError):
    """A package of ours was imported without `slipway`: its modules would be loaded a second time.

    Args:
        package: the name that it was imported by.
    """

    def __init__(self, package: str) -> None:
        super().__init__(
            f"{package} is Slipway's own here, and imported as slipway.{package}; a folder {package}/ of "
            "yours needs an __init__.py, and comes first on the path",
            name=package,
        )


def refuse_other_name(name: str) -> None:
    """Ends the import of a package that lies in this one, but is imported from elsewhere.

    Args:
        name: the `__name__` of the package.

    Raises:
        OtherNameError: it does not begin with `slipway`.
    """
    if not name.startswith(f"{__name__}."):
        raise OtherNameError(name)
