"""Benchmarks are run by hand and seldom: here it is seen that what they import still exists."""

import ast
from pathlib import Path

import pytest

from slipway.components.project import PROJECT_ROOT

FILES = sorted((PROJECT_ROOT / "benchmarks").glob("*.py"))


def imported(file):
    """Each name that a file imports from the project, with its module."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "slipway":
            yield from ((node.module, alias.name) for alias in node.names)


def defined(module):
    """The names at a module's top level, and the modules of a package."""
    place = PROJECT_ROOT.joinpath(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    names = {path.stem for path in place.glob("*")} if place.is_dir() else set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


@pytest.mark.parametrize("file", FILES, ids=lambda file: Path(file).stem)
def test_what_a_benchmark_imports_is_there(file):
    assert [name for name in imported(file) if name[1] not in defined(name[0])] == []
