"""Finds the source files that a user function needs without running them, their digests, and their imports.

The source is only read, so what is known at run time alone stays unseen: files and modules of whose name the
source holds no part, plug-ins found by scanning folders, and installed packages. Those that the files import
are in the `stack:` parts of the fingerprint, with their versions.
"""

import ast
import hashlib
import itertools
import os
import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NamedTuple

from slipway.components.errors import ComponentError
from slipway.components.parsed_source import parsed_source

# In the order in which Python's own finder prefers them.
_SUFFIXES = (*EXTENSION_SUFFIXES, ".py")
INSTALLED = frozenset({"site-packages", "dist-packages"})
_OWN = "slipway."
_MODULE_NAME = re.compile(r"\.*[^\W\d]\w*(\.[^\W\d]\w*)*")
# How a module's name begins that is put together at run time, with its package; `?` marks it among the names.
_BEGINNING = re.compile(r"(\.+|(?=[^.]+\.))((?:[^\W\d]\w*\.)*\w*)")
_FILE_NAME = re.compile(rb"""["']([^"'\n]{0,250}\.\w{1,15})["']""")


def source_closure(
    dotted_paths: Iterable[str], *, root: Path, further: Iterable[Path] = ()
) -> dict[str, str]:
    """Return the content digests of the modules that the given functions need and that live under `root`.

    Follows absolute and relative imports wherever they are (in functions, in `try`, under `TYPE_CHECKING`),
    the `__init__.py` of every package on the way, and, in a module that mentions `import_module` or
    `__import__`, every string that names a module under `root`, and every module there whose name begins as
    one that is put together (`f"models.{name}"`). In doubt a file is counted: an unnecessary
    rerun is acceptable, a missing one is not. The whole content counts, including comments; times and
    permissions do not.

    A symbolic link counts under the name it is imported by, with the content of its target. Installed
    packages (a virtual environment, `site-packages`, packages that `pip install --target` put into a
    folder) do not count even below `root`. A file that does not parse is digested, but its imports stay
    unknown. A path that leads to nothing under `root` adds nothing: whether it can be imported is checked
    where the workload is read.

    Args:
        dotted_paths: functions or modules such as `workloads.taxi.model.build_model` (`module:function`
            also works).
        root: the folder from which absolute imports start.
        further: other folders to import from, as on `sys.path`. A module that several of them hold counts
            in each, whichever Python would take.

    Returns:
        Path relative to `root` (posix), or the absolute path of a file outside -> sha256 hex digest of the
        file, sorted by path.

    Raises:
        ComponentError: a folder does not exist, or a module in it cannot be read.
    """
    return closure(dotted_paths, root=root, further=further).digests


class Closure(NamedTuple):
    """The modules that functions need.

    Attributes:
        digests: see `source_closure`.
        elsewhere: the dotted names that are given, or imported by a module other than Slipway's own, and that
            lead to none of the modules (they are of installed packages, or of Python) or to Slipway's own.
        files: the absolute paths of readable files that a text in such a module names, from where it lies or
            from a folder that is imported from. Whether it reads them is unknown.
    """

    digests: dict[str, str]
    elsewhere: frozenset[str]
    files: frozenset[str]


def closure(dotted_paths: Iterable[str], *, root: Path, further: Iterable[Path] = ()) -> Closure:
    """Return the result of `source_closure`, and the names that lead elsewhere; it has the same arguments."""
    finders = [_Finder(os.path.abspath(folder)) for folder in (root, *further)]  # noqa: PTH100  (resolve() would follow links, which name modules)
    top = f"{finders[0].root}/"
    digests: dict[str, str] = {}
    imports: dict[str, _Imports] = {}
    seen: set[str] = set()
    here: set[str] = set()
    pending = [path.replace(":", ".") for path in dotted_paths]
    named = set(pending)
    files: set[str] = set()
    while pending:
        dotted = pending.pop()
        if dotted in seen:
            continue
        seen.add(dotted)
        if dotted.endswith("?"):
            pending.extend(name for each in finders for name in each.beginning_with(dotted[:-1]))
        for finder, module in ((each, m) for each in finders for m in each.modules_on_the_way_to(dotted)):
            here.add(dotted)
            file = f"{finder.root}/{module.file}".removeprefix(top)
            if file not in digests:
                digests[file], imports[file] = _read(finder.root, module.file)
                references = list(_absolute(imports[file].references, module))
                if not module.name.startswith(_OWN):
                    named.update(each for each in references if not each.endswith("?"))
                    beside = f"{finder.root}/{module.file}".rpartition("/")[0]
                    starts = {beside, *(each.root for each in finders)}
                    files.update(_readable(imports[file].files, starts))
                else:  # in ours, nothing depends on a module that no text names in full
                    references = [each for each in references if not each.endswith("?")]
                pending.extend(references)
            if dotted == f"{module.name}.*":  # `from package import *` imports what its __all__ names
                pending.extend(f"{module.name}.{name}" for name in imports[file].exported)
    return Closure(
        dict(sorted(digests.items())),
        frozenset(name for name in named if name not in here or name.startswith(_OWN)),
        frozenset(files),
    )


def _readable(names: Collection[str], starts: Iterable[str]) -> Iterator[str]:
    """Yield the absolute paths of the files of those names that there are, from where each may start."""
    for start, name in itertools.product(starts, names):
        path = os.path.abspath(os.path.join(start, name))  # noqa: PTH100, PTH118  (as for parameters)
        if os.path.isfile(path) and os.access(path, os.R_OK):  # noqa: PTH113
            yield path


class _Module(NamedTuple):
    """A module; `file` is its posix path relative to its root."""

    name: str
    file: str
    is_package: bool


class _Imports(NamedTuple):
    """The imports of a source text, (leading dots, dotted name) pairs, strings of `__all__`, and files."""

    references: frozenset[tuple[int, str]]
    exported: frozenset[str]
    files: frozenset[str] = frozenset()


# Keyed by content, so it can never be stale; a few hundred bytes for each version of a file.
_imports_by_digest: dict[str, _Imports] = {}


def _read(root: str, file: str) -> tuple[str, _Imports]:
    try:
        with open(f"{root}/{file}", "rb") as stream:  # noqa: PTH123  (this loop decides how long `plan` takes)
            source = stream.read()
    except OSError as error:
        raise ComponentError(
            f"{file}: cannot be read ({error.strerror}), and a node depends on it",
            hint="Restore the file or its permissions; the cache must not guess what it holds.",
        ) from error
    digest = hashlib.sha256(source).hexdigest()
    if digest not in _imports_by_digest:
        _imports_by_digest[digest] = _imports_of(source) if file.endswith(".py") else _NOTHING
    return digest, _imports_by_digest[digest]


_NOTHING = _Imports(frozenset(), frozenset())


def _imports_of(source: bytes) -> _Imports:
    try:
        tree = parsed_source(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # Python cannot parse the source
        return _NOTHING
    references: set[tuple[int, str]] = set()
    exported: set[str] = set()
    for statement in _statements(tree):
        if isinstance(statement, ast.Import):
            references.update((0, alias.name) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            base = f"{statement.module}." if statement.module else ""
            references.update((statement.level, base + alias.name) for alias in statement.names)
        elif _assigns_all(statement):
            exported.update(_strings(statement))
    if b"import_module" in source or b"__import__" in source:
        for text in filter(_MODULE_NAME.fullmatch, _strings(tree)):
            name = text.lstrip(".")
            references.add((len(text) - len(name), name))
        for found in filter(None, map(_BEGINNING.fullmatch, _beginnings(tree))):
            references.add((len(found[1]), f"{found[2]}?"))
    files = {os.fsdecode(name) for name in _FILE_NAME.findall(source)}
    return _Imports(frozenset(references), frozenset(exported), frozenset(files))


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every statement at any depth: a sixth of the time of `ast.walk`, which enters expressions too."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending.extend(getattr(node, field, ()))


def _assigns_all(statement: ast.AST) -> bool:
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def _strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _beginnings(tree: ast.Module) -> Iterator[str]:
    """Yield the text before the first value in every text that is put together."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.JoinedStr(values=[ast.Constant(value=str(text)), *_])
                | ast.BinOp(left=ast.Constant(value=str(text)))
                | ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text))))
            ):
                yield re.split("[{%]", text, maxsplit=1)[0]


def _absolute(references: Iterable[tuple[int, str]], module: _Module) -> Iterator[str]:
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    for level, name in references:
        if level == 0:
            yield name
        elif level <= len(package):  # otherwise it leads above the root, which Python rejects too
            yield ".".join([*package[: len(package) - level + 1], name])


@cache
def _installed_into(root: str, _changed_ns: int) -> frozenset[str]:
    """Return the packages and modules that an installer put into a folder, as `pip install --target` does."""
    # A distribution's RECORD has a line for each file, which begins with its path (PEP 376).
    return frozenset(
        line.split(",", 1)[0].split("/", 1)[0].removesuffix(".py")
        for record in Path(root).glob("*.dist-info/RECORD")
        for line in record.read_text(encoding="utf-8").splitlines()
    )


class _Finder:
    """Finds modules as Python would with `root` as the only entry of `sys.path`."""

    def __init__(self, root: str) -> None:
        if not os.path.isdir(root):  # noqa: PTH112
            raise ComponentError(
                f"the source root {root} is not a folder", hint="Give the folder that holds workloads/."
            )
        self.root = root
        self._real_root = os.path.realpath(root)
        self._installed = _installed_into(root, os.stat(root).st_mtime_ns)  # noqa: PTH116
        self._candidates: dict[str, tuple[str, bool] | None] = {}  # by path relative to the root
        self._installed_folders: dict[str, bool] = {}

    def modules_on_the_way_to(self, dotted: str) -> Iterator[_Module]:
        """Yield the packages and the module that importing `dotted` runs; further parts are names in it."""
        parts = dotted.split(".")
        for depth, part in enumerate(parts, start=1):
            path = "/".join(parts[:depth])
            if not part.isidentifier() or parts[0] in self._installed:  # "*", or no module name at all
                return
            if path not in self._candidates:
                self._candidates[path] = self._file_of(path)
            found = self._candidates[path]
            if found is None:
                return
            file, is_package = found
            if file:
                yield _Module(".".join(parts[:depth]), file, is_package)
            if not is_package:
                return

    def beginning_with(self, dotted: str) -> Iterator[str]:
        """Yield the dotted names of the modules that begin with a text: `models.`, or `models.small`."""
        package, dot, start = dotted.rpartition(".")
        folder = Path(self.root, *package.split("."))
        for name in os.listdir(folder) if folder.is_dir() else ():  # noqa: PTH208
            if name.startswith(start):
                yield f"{package}{dot}{name.partition('.')[0]}"

    def _file_of(self, path: str) -> tuple[str, bool] | None:
        """Return (file, is a package) of the module at `path`; the file is "" without `__init__`."""
        for stem, is_package in ((f"{path}/__init__", True), (path, False)):
            for suffix in _SUFFIXES:
                if os.path.isfile(f"{self.root}/{stem}{suffix}"):  # noqa: PTH113
                    file = stem + suffix
                    return None if self._is_installed(file) else (file, is_package)
        return ("", True) if os.path.isdir(f"{self.root}/{path}") else None  # noqa: PTH112

    def _is_installed(self, file: str) -> bool:
        folder, name = os.path.split(f"{self.root}/{file}")
        if os.path.islink(f"{folder}/{name}"):  # noqa: PTH114
            folder = os.path.dirname(os.path.realpath(f"{folder}/{name}"))  # noqa: PTH120
        if folder not in self._installed_folders:
            self._installed_folders[folder] = self._holds_packages(Path(os.path.realpath(folder)))
        return self._installed_folders[folder]

    def _holds_packages(self, folder: Path) -> bool:
        """Return True if a folder belongs to an installation or a virtual environment."""
        own = folder.is_relative_to(self._real_root)
        below = folder.relative_to(self._real_root) if own else folder
        if not INSTALLED.isdisjoint(below.parts):
            return True
        top = Path(self._real_root) if own else Path("/")
        return any((top / each / "pyvenv.cfg").is_file() for each in [below, *below.parents][:-1])
