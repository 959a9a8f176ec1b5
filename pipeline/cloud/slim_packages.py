"""Takes out of the image's virtual environment what no task needs. Runs while the image is built, by itself.

    python3 slim_packages.py /opt/venv

What goes: headers for C++ code that nobody compiles there, the packages' own tests, whon Vertex AI's package
brings for language models, Arrow's server of tables, and the symbols of libraries, which only a debugger
reads: 430 MB of TensorFlow's headers and 330 MB of symbols. pip stays: Beam's launcher of workers asks it
what is installed.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_LARGE = 1 << 20
"""Bytes; smaller libraries have no symbols to speak of."""

_WITH_TESTS_BESIDE = (
    "apache_beam",
    "tensorflow_data_validation",
    "tensorflow_model_analysis",
    "tensorflow_transform",
    "tfx",
    "tfx_bsl",
)
"""Packages whose modules `x_test` test the module x beside them. Elsewhere that name means other things, such
as a test of statistics."""

_FLIGHT = ("libarrow_flight.so*", "libarrow_python_flight.so*", "_flight.*.so")
"""Arrow's server of tables; only pyarrow.flight loads it."""

_STRIPPED = ("apache_beam", "ml_metadata", "pyarrow", "tensorflow", "tfx_bsl", "zstandard")
"""Packages whose libraries have symbols. Those of NumPy, SciPy, scikit-learn and TFDV were laid out anew when
their wheels were made (auditwheel), and do not load after `strip`."""


def slim(packages: Path) -> None:
    """Removes what no task needs.

    Args:
        packages: the folder of installed packages.

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
    # What is called testing is imported by others.
    yield from (each for each in packages.rglob("tests") if each.is_dir())
    for name in _WITH_TESTS_BESIDE:
        for pattern in ("*_test.py", "*_test.*.pyc"):
            yield from (packages / name).rglob(pattern)
    for pattern in _FLIGHT:
        yield from (packages / "pyarrow").glob(pattern)
    # Parts of google-cloud-aiplatform, which nothing else of it imports.
    yield from (packages / name for name in ("vertexai", "agentplatform") if (packages / name).is_dir())


def _is_large(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size >= _LARGE


if __name__ == "__main__":
    (found,) = Path(sys.argv[1]).glob("lib/python3*/site-packages")
    slim(found)
