"""Checks that a dotted path leads to a function by reading the source; nothing is imported or executed.

A wrong path, a syntax error or a missing import in the user's code is thus reported before TensorFlow loads.
Errors that only show when the code runs (an exception at import, an attribute of a library) are left to the
run.
"""

import ast
import contextlib
import functools
import importlib.util
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from pathlib import Path
from typing import Literal

import slipway
from slipway.components.nearest import nearest
from slipway.components.parsed_source import parsed_source


def find_import_problem(
    dotted_path: str, *, root: Path, kind: Literal["function", "class"] = "function"
) -> str:
    """Return why `dotted_path` cannot be imported, in words; "" if no reason is found.

    Finds missing modules, missing names, and syntax errors with file and line, in the module, the packages
    around it, and all modules below `root` that they import at their top level. Installed packages other than
    Slipway are only checked for existence.
    """
    module, _, name = dotted_path.rpartition(".")
    reader = _Reader(root.absolute())
    try:
        source = reader.source(module)
        if source is None or source.is_open or name in source.names:
            return ""
        inner = reader.submodule(module, name)
    except _BrokenError as broken:
        return str(broken)
    if inner:
        return f"is a module, not a {kind} of it; {words_for_unknown('', inner.defined[kind])}"
    return f"{source.shown} has no {kind} {name}; {words_for_unknown(name, source.defined[kind])}"


def files_imported(dotted_path: str, *, root: Path) -> list[Path]:
    """Return the files below the root that the import of a path's module runs, in the order of the imports.

    They are the module, the packages around it, and all modules that these import at their top level; of one
    that cannot be imported, those before the problem. Slipway's own are left out.
    """
    reader = _Reader(root.absolute())
    with contextlib.suppress(_BrokenError):  # `find_import_problem` reports it
        reader.source(dotted_path.rpartition(".")[0])
    return reader.files


@dataclass(frozen=True, slots=True)
class SourceModule:
    """A parsed module below the root; `is_package`: it is the `__init__` of a package."""

    name: str
    tree: ast.Module
    is_package: bool


def read_module(name: str, *, root: Path) -> SourceModule | None:
    """Return a module below the root or of Slipway; None if it is elsewhere, compiled or not Python.

    Args:
        root: the project's root, from which modules are imported.
    """
    parts = name.split(".")
    found = _Reader(root.absolute()).modules(parts)
    if len(found) < len(parts) or (file := found[-1].file) is None or file.suffix != ".py":
        return None
    try:
        return SourceModule(name, _parsed(file, str(file)), is_package=found[-1].folder is not None)
    except _BrokenError:  # `find_import_problem` reports it
        return None


class _BrokenError(Exception):
    """Ends the reading at the first problem; its text is the message."""


@dataclass(frozen=True, slots=True)
class _Module:
    """A module below the root.

    Attributes:
        name: the dotted name.
        file: the source or extension file; None for a package without `__init__`.
        folder: the package's folder; None if the module is not a package.
    """

    name: str
    file: Path | None
    folder: Path | None


@dataclass(frozen=True, slots=True)
class _Source:
    """The names in a module.

    Attributes:
        shown: the module's file, for messages.
        names: all top-level names.
        defined: the names that the module itself defines, by kind.
        is_open: whether the module may have names that are not visible in its source.
    """

    shown: str
    names: frozenset[str] = frozenset()
    defined: Mapping[str, Sequence[str]] = field(default_factory=lambda: {"function": (), "class": ()})
    is_open: bool = False


class _Reader:
    """Reads the modules below the root, each once, and the modules that they import at their top level."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sources: dict[str, _Source] = {}
        self.files: list[Path] = []
        """The files read so far, but those of Slipway."""

    def source(self, module: str) -> _Source | None:
        """Read a module below the root, with the packages around it; return None for an installed module.

        Raises:
            _BrokenError: there is no such module, or it cannot be imported.
        """
        parts = module.split(".")
        found = self.modules(parts)
        if _is_ours(parts[0], found):
            raise _BrokenError(str(slipway.OtherNameError(parts[0])))
        if not found:
            _refuse_missing(parts[0], root=self._root)
            return None
        if len(found) < len(parts):
            missing, there = ".".join(parts[: len(found) + 1]), _names_in(found[-1].folder)
            raise _BrokenError(f"there is no module {missing}; {words_for_unknown(parts[len(found)], there)}")
        return [self._read(each) for each in found][-1]

    def submodule(self, package: str, name: str) -> _Source | None:
        """Return the source of the module `name` in a package below the root; None if there is none."""
        parts = [*package.split("."), name]
        return self.source(".".join(parts)) if len(self.modules(parts)) == len(parts) else None

    def modules(self, parts: list[str]) -> list[_Module]:
        """Return the packages on the path and the module, as far as they exist below the root.

        Slipway's own are found wherever it is installed: workload files name its models.
        """
        found: list[_Module] = []
        is_own = parts[0] == slipway.__name__
        folder: Path | None = Path(slipway.__file__).parent.parent if is_own else self._root
        for depth, part in enumerate(parts, start=1):
            module = _module_in(folder, part, ".".join(parts[:depth])) if folder else None
            if module is None or (depth == 1 and module.file is None and _is_regular_package(part)):
                break
            found.append(module)
            folder = module.folder
        return found

    def _read(self, module: _Module) -> _Source:
        if module.name not in self._sources:
            if module.file is not None and module.name.partition(".")[0] != slipway.__name__:
                self.files.append(module.file)
            if module.file is None or module.file.suffix != ".py":
                shown = module.name.replace(".", "/")
                self._sources[module.name] = _Source(shown, is_open=module.file is not None)
            else:
                inside = module.file.is_relative_to(self._root)
                shown = str(module.file.relative_to(self._root) if inside else module.file)
                tree = _parsed(module.file, shown)
                self._sources[module.name] = _described(tree, shown)
                self._follow_imports(tree, module, shown)
        return self._sources[module.name]

    def _follow_imports(self, tree: ast.Module, module: _Module, shown: str) -> None:
        # Only imports that always run; an import inside `try` or `if` may be meant to fail.
        for statement in tree.body:
            try:
                if isinstance(statement, ast.Import):
                    for alias in statement.names:
                        self.source(alias.name)
                elif isinstance(statement, ast.ImportFrom):
                    self._follow_names(statement, module)
            except _BrokenError as broken:
                text = str(broken)
                # Only the innermost place is named, which is the one to correct.
                raise _BrokenError(
                    text if ".py:" in text else f"{shown}:{statement.lineno}: {text}"
                ) from broken

    def _follow_names(self, statement: ast.ImportFrom, module: _Module) -> None:
        name = statement.module or ""
        if statement.level:
            around = module.name.split(".") if module.folder else module.name.split(".")[:-1]
            above = around[: max(0, len(around) - statement.level + 1)]
            if not above:
                raise _BrokenError(f"'from {'.' * statement.level}{name}' leads out of the packages")
            name = ".".join([*above, name] if name else above)
        source = self.source(name)
        if source is None or source.is_open:
            return
        for alias in statement.names:
            if alias.name not in ("*", *source.names) and self.submodule(name, alias.name) is None:
                raise _BrokenError(
                    f"{source.shown} has no {alias.name}; {words_for_unknown(alias.name, source.names)}"
                )


def _is_ours(name: str, found: list[_Module]) -> bool:
    """Return True if a top-level name is one of Slipway's folders, which are imported as `slipway.NAME`."""
    spec = None if found else _installed(name)
    file = found[0].file if found else Path(spec.origin) if spec and spec.origin else None
    ours = Path(slipway.__file__).with_name(name) / "__init__.py"
    return file is not None and ours.is_file() and file.resolve() == ours.resolve()


def _module_in(folder: Path, part: str, name: str) -> _Module | None:
    package = folder / part
    if (package / "__init__.py").is_file():
        return _Module(name, package / "__init__.py", package)
    file = next((f for s in (*EXTENSION_SUFFIXES, ".py") if (f := folder / f"{part}{s}").is_file()), None)
    if file is not None:
        return _Module(name, file, None)
    return _Module(name, None, package) if package.is_dir() else None


def _is_regular_package(name: str) -> bool:
    """Return True if an installed module takes precedence over a plain folder of the same name."""
    spec = _installed(name)
    return spec is not None and spec.origin is not None


def _installed(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):  # a module without a spec, such as __main__
        return None


def _refuse_missing(name: str, *, root: Path) -> None:
    if name not in sys.stdlib_module_names and _installed(name) is None:
        names = {*_names_in(root), *(each.name for each in pkgutil.iter_modules())}
        raise _BrokenError(f"no module {name} is here or installed; {words_for_unknown(name, names)}")


def _names_in(folder: Path | None) -> list[str]:
    return [each.name for each in pkgutil.iter_modules([str(folder)])] if folder else []


# Several checks of one workload file read the same modules; nobody changes a tree.
_tree_of = functools.lru_cache(maxsize=64)(parsed_source)


def _parsed(file: Path, shown: str) -> ast.Module:
    try:
        return _tree_of(file.read_bytes())
    except SyntaxError as error:
        raise _BrokenError(f"{shown}:{error.lineno or 1}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError, OSError) as error:
        raise _BrokenError(f"{shown}:1: cannot be read as Python: {error}") from error


def _described(tree: ast.Module, shown: str) -> _Source:
    names: set[str] = set()
    defined: dict[str, list[str]] = {"function": [], "class": []}
    is_open = False
    for node in _top_level(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            if not isinstance(node, ast.AsyncFunctionDef):
                defined["class" if isinstance(node, ast.ClassDef) else "function"].append(node.name)
            is_open |= node.name == "__getattr__"
        elif isinstance(node, ast.Import):
            names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
            is_open |= any(alias.name == "*" for alias in node.names)
        else:
            # Every stored name is the target of an assignment, a loop or a `with`.
            stored = (each for each in ast.walk(node) if isinstance(each, ast.Name))
            names.update(each.id for each in stored if isinstance(each.ctx, ast.Store))
    return _Source(shown, frozenset(names), defined, is_open)


def _top_level(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run at import, also those inside `if`, `try`, `with` and loops."""
    for statement in statements:
        yield statement
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for block in ("body", "orelse", "finalbody"):
                yield from _top_level(getattr(statement, block, ()))
            for handler in getattr(statement, "handlers", ()):
                yield from _top_level(handler.body)


def words_for_unknown(name: str, names: Iterable[str]) -> str:
    """Return, in words, the nearest of `names` to an unknown name, or all of them if they are few."""
    known = sorted(each for each in names if not each.startswith("_"))
    if near := nearest(name, known):
        return f"nearest: {near}"
    return f"there are: {', '.join(known[:8])}" if 0 < len(known) <= 8 else "check the spelling"
