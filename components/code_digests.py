"""Digests of the code that makes a model, for its manifest."""

import hashlib
import importlib.util
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

CODE = "code.json"
"""The digests when the training began, in the `SBOM_FOLDER` of a Model artifact from our Trainer."""

_SHARED_CODE = "slipway.components"


def code_digests(functions: Iterable[str]) -> dict[str, str]:
    """Return one SHA-256 over the Python files for each function's package and for this project's own.

    Args:
        functions: dotted paths, module and function; empty ones and those that cannot be found are left out.
            A module outside any package counts with its own file.
    """
    modules = [path.rpartition(".")[0] for path in functions]
    packages = {module.rpartition(".")[0] or module for module in modules} | {_SHARED_CODE}
    files = {name: _files(name) for name in sorted(packages - {""})}
    return {name: _digest(found) for name, found in files.items() if found}


def _files(package: str) -> dict[str, Path]:
    """Return the Python files of a package or a module by name; none if it cannot be found."""
    try:
        spec = importlib.util.find_spec(package)
    except Exception:  # the packages above it are imported: whatever their code raises, the training tells
        return {}
    if spec is None:
        return {}
    if spec.submodule_search_locations:
        folder = Path(next(iter(spec.submodule_search_locations)))
        found = ((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*.py"))
    else:
        found = ((Path(each).name, Path(each)) for each in (spec.origin,) if each)
    return {name: path for name, path in found if path.is_file()}  # an editor's lock is a link to nothing


def _digest(files: Mapping[str, Path]) -> str:
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()
