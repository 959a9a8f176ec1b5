"""Finds the unit tests that a change touches: `python -m touched` prints their files, for `make check`.

Changed is what differs from where the branch left its upstream, or `main`, and what is not committed. A
module's tests are its mirror (components/x/y.py -> tests/unit/components/x/test_y.py) and those that import
it, also through a module of tests/support; where there are none, those of the modules that import it. Any
other file's tests are those that name it.
"""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

IN_SLIPWAY = ("pipeline", "components", "schemas")
PACKAGES = (*IN_SLIPWAY, "workloads")
MOST_FILES = 40
"""This many take less than a minute; a change that touches more needs `make test`."""
_UNIT, _SUPPORT = Path("tests/unit"), Path("tests/support")


def changed(root: Path) -> list[Path]:
    """The files that a branch and what is not committed have changed, relative to the root, sorted.

    Args:
        root: the checkout.
    """

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
        return done.stdout.split("\0" if "-z" in words else "\n")[:-1] if done.returncode == 0 else []

    upstreams = ("@{upstream}", "origin/main", "main")
    begin = next((found for name in upstreams for found in git("merge-base", "HEAD", name)), "HEAD")
    names = git("diff", "--name-only", "-z", begin) + git("ls-files", "--others", "--exclude-standard", "-z")
    return sorted({Path(name) for name in names})


def imported(file: Path) -> frozenset[str]:
    """The dotted names that a file imports, wherever it does; one that Python cannot parse imports none."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return frozenset()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{name.name}" for name in node.names)
    return frozenset(found)


def touched(
    files: Iterable[Path],
    *,
    tests: Mapping[Path, frozenset[str]],
    modules: Mapping[Path, frozenset[str]],
    named: Callable[[str], Iterable[Path]],
) -> list[Path]:
    """The tests that some changed files touch; mirrors and changed tests first, each once.

    Args:
        files: the changed ones.
        tests: file of each unit test -> what it imports.
        modules: file of each module -> what it imports.
        named: the tests that name a file.
    """
    near: dict[Path, None] = {}
    far: dict[Path, None] = {}
    for file in files:
        if file in tests:
            near[file] = None
        elif file.name == "conftest.py" and file.parent.is_relative_to(_UNIT):
            far |= dict.fromkeys(test for test in tests if test.is_relative_to(file.parent))
        elif file.suffix == ".py":
            own, others = _of_module(file, tests)
            if not own and not others:
                others = [test for each in above(file, modules) for test in seen_by(each, tests)]
            near |= dict.fromkeys(own)
            far |= dict.fromkeys(others)
        elif file.suffix == ".md":
            far |= dict.fromkeys(test for test in tests if test.parent.name == "docs")
        else:
            far |= dict.fromkeys(named(file.name))
    return list(near | far)


def above(file: Path, modules: Mapping[Path, frozenset[str]]) -> list[Path]:
    """The modules that import a module."""
    return [each for each, names in modules.items() if dotted(file) in names]


def seen_by(file: Path, tests: Mapping[Path, frozenset[str]]) -> list[Path]:
    """The unit tests of a module: its mirror, and those that import it."""
    own, others = _of_module(file, tests)
    return own + others


def dotted(file: Path) -> str:
    """The name that a module is imported by.

    Args:
        file: relative to the root.
    """
    parts = file.with_suffix("").parts
    if parts[0] in IN_SLIPWAY:
        parts = ("slipway", *parts)
    return ".".join(parts[2:] if parts[:2] == ("tests", "support") else parts).removesuffix(".__init__")


def mirror_of(file: Path) -> Path:
    """The file of a module's own unit tests, e.g. tests/unit/components/x/test_y.py of components/x/y.py.

    Args:
        file: relative to the root.
    """
    return _UNIT / file.parent / f"test_{file.stem}.py"


def _of_module(file: Path, tests: Mapping[Path, frozenset[str]]) -> tuple[list[Path], list[Path]]:
    """The mirror of a module, and the other tests that import it."""
    mirror = mirror_of(file)
    own = [mirror] if mirror in tests else []
    return own, [test for test, names in tests.items() if dotted(file) in names and test != mirror]


def unit_tests(root: Path) -> dict[Path, frozenset[str]]:
    """The file of each unit test, and what it imports, itself or through modules of tests/support."""
    support = {dotted(file): names for file, names in _read(root, (root / _SUPPORT).glob("*.py")).items()}
    own = _read(root, sorted((root / _UNIT).rglob("test_*.py")))
    return {test: names.union(*(support.get(name, ()) for name in names)) for test, names in own.items()}


def own_modules(root: Path) -> dict[Path, frozenset[str]]:
    """The file of each module of the project, and what it imports."""
    files = [file for package in PACKAGES for file in sorted((root / package).rglob("*.py"))]
    return _read(root, [*files, root / "local_runner.py", root / "cloud_runner.py"])


def _read(root: Path, files: Iterable[Path]) -> dict[Path, frozenset[str]]:
    return {file.relative_to(root): imported(file) for file in files}


def main(root: Path) -> None:
    """Prints the files of the tests that the changes in a checkout touch."""
    tests = unit_tests(root)

    def named(name: str) -> list[Path]:
        return [test for test in tests if name in (root / test).read_text(encoding="utf-8")]

    found = touched(changed(root), tests=tests, modules=own_modules(root), named=named)
    print("\n".join(map(str, found[:MOST_FILES])))
    if len(found) > MOST_FILES:
        left = len(found) - MOST_FILES
        print(f"{left} more files of tests are touched than run here: make test", file=sys.stderr)


if __name__ == "__main__":
    main(Path.cwd())
