"""Takes out of the image's virtual environment what no task needs. Runs while the image is built, by itself.

    python3 slim_packages.py /opt/venv

What goes: headers for C++ code that nobody compiles there, the packages' own tests, and the symbols of
TensorFlow's libraries, which only a debugger reads: 430 MB of its headers and 250 MB of symbols. pip stays:
Beam's launcher of workers asks it what is installed.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_LARGE = 1 << 20
"""Bytes; smaller libraries have no symbols to speak of."""


def slim(packages: Path) -> None:
    """Removes what no task needs.

    Args:
        packages: the folder of installed packages.

    Raises:
        subprocess.CalledProcessError: `strip` failed at a library.
        FileNotFoundError: there is no `strip`; Debian's package binutils has it.
    """
    unneeded = set(_unneeded(packages))
    for folder in unneeded:
        if unneeded.isdisjoint(folder.parents):
            shutil.rmtree(folder)
    # Others were laid out anew when their wheel was made (auditwheel), and do not load after strip.
    libraries = [path for path in (packages / "tensorflow").rglob("*.so*") if _is_large(path)]
    if libraries:
        subprocess.run(["strip", "--strip-unneeded", *map(str, libraries)], check=True)  # noqa: S607


def _unneeded(packages: Path) -> Iterator[Path]:
    yield from packages.glob("*/include")
    # What is called testing is imported by others.
    yield from (each for each in packages.rglob("tests") if each.is_dir())


def _is_large(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size >= _LARGE


if __name__ == "__main__":
    (found,) = Path(sys.argv[1]).glob("lib/python3*/site-packages")
    slim(found)
