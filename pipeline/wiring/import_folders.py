"""Finds the folders that the user's own modules are imported from."""

import os
import sys
import sysconfig
from pathlib import Path

from slipway.components.source_closure import INSTALLED


def import_folders() -> list[Path]:
    """Return the folders that this process and its children import from, except Python's and packages'.

    They include folders added to PYTHONPATH since this process began, e.g. in a notebook cell, from which
    the nodes of a run import too, and the sources of packages that are installed editable, whether through
    `sys.path` or through the finder that setuptools adds.
    """
    own = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
    named = [Path(entry or ".").absolute() for entry in sys.path] + _named_since() + _editable()
    return [
        folder
        for folder in dict.fromkeys(named)
        if folder.is_dir()
        and INSTALLED.isdisjoint(folder.parts)
        and not any(folder.is_relative_to(each) for each in own)
    ]


def _named_since() -> list[Path]:
    return [Path(entry).absolute() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


def _editable() -> list[Path]:
    found = []
    for finder in sys.meta_path:
        module = sys.modules.get(getattr(finder, "__module__", ""))
        # Package -> its folder; only setuptools' finder has such a mapping.
        mapping = getattr(module, "MAPPING", {})
        if isinstance(mapping, dict):
            found += [Path(path).parent.absolute() for path in mapping.values()]
    return found
