"""A plugin of coverage.py that does not trace packages while they are imported: `make test COVERAGE=1`.

On Python 3.11 coverage's tracer is called for each line of any code, and ignores those that are not ours:
the import of TFX alone takes half as long again. What a package runs after its import is traced as ever, so
nothing of ours goes uncounted, except a module that a package imports by itself while it is imported; none
does.

It is copied into the environment's packages, because coverage loads it in every process that Python starts,
whatever its path is.
"""

import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

_PACKAGES = "/site-packages/"
_traced = SourceFileLoader.exec_module


def _untraced(loader: SourceFileLoader, module: ModuleType) -> None:
    tracer = sys.gettrace()
    if tracer is None or _PACKAGES not in loader.path:
        _traced(loader, module)
        return
    sys.settrace(None)
    try:
        _traced(loader, module)
    finally:
        sys.settrace(tracer)


def coverage_init(registry: Any, options: dict[str, Any]) -> None:
    """Begin; coverage calls this in each process before it counts."""
    del registry, options
    SourceFileLoader.exec_module = _untraced  # type: ignore[method-assign]
