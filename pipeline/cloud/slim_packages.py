"""Removes from the image's virtual environment what no task needs. A script that the image's build runs.

    python3 slim_packages.py /opt/venv

It removes headers for C++ code, which nobody compiles there; the packages' own tests; the language-model
parts of Vertex AI's package; Arrow Flight; and the libraries' symbols, which only a debugger reads.
TensorFlow's headers take 430 MB and the symbols 330 MB. pip stays: Beam's worker launcher asks it what is
installed.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_LARGE = 1 << 20
"""Bytes; smaller libraries have hardly any symbols."""

_WITH_TESTS_BESIDE = (
    "apache_beam",
    "tensorflow_data_validation",
    "tensorflow_model_analysis",
    "tensorflow_transform",
    "tfx",
    "tfx_bsl",
)
"""Packages in which a module `x_test` tests the module x beside it. Elsewhere such a name can mean something
else, such as a statistical test."""

_FLIGHT = ("libarrow_flight.so*", "libarrow_python_flight.so*", "_flight.*.so")
"""The libraries of Arrow Flight; only pyarrow.flight loads them."""

_STRIPPED = ("apache_beam", "ml_metadata", "pyarrow", "tensorflow", "tfx_bsl", "zstandard")
"""Packages whose libraries have symbols. Those of NumPy, SciPy, scikit-learn and TFDV were rewritten when
their wheels were built (auditwheel), and do not load after `strip`."""


def slim(packages: Path) -> None:
    """Remove what no task needs.

    Raises:
        subprocess.CalledProcessError: `strip` failed at a library.
        FileNotFoundError: there is no `strip`; Debian's package binutils has it.
    """
    unneeded = set(_unneeded(packages))
    for path in unneeded:
        if not unneeded.isdisjoint(path.parents):
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    libraries = [path for name in _STRIPPED for path in (packages / name).rglob("*.so*") if _is_large(path)]
    if libraries:
        subprocess.run(["strip", "--strip-unneeded", *map(str, libraries)], check=True)  # noqa: S607


def _unneeded(packages: Path) -> Iterator[Path]:
    yield from packages.glob("*/include")
    # Folders named testing stay, because other packages import them.
    yield from (each for each in packages.rglob("tests") if each.is_dir())
    for name in _WITH_TESTS_BESIDE:
        for pattern in ("*_test.py", "*_test.*.pyc"):
            yield from (packages / name).rglob(pattern)
    for pattern in _FLIGHT:
        yield from (packages / "pyarrow").glob(pattern)
    # Parts of google-cloud-aiplatform that its other parts do not import.
    yield from (packages / name for name in ("vertexai", "agentplatform") if (packages / name).is_dir())


def _is_large(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size >= _LARGE


if __name__ == "__main__":
    (found,) = Path(sys.argv[1]).glob("lib/python3*/site-packages")
    slim(found)
