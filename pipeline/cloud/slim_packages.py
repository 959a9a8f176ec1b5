"""Removes from the image's virtual environment what no task needs. A script that the image's build runs.

    python3 slim_packages.py /opt/venv

It removes what only compilers read, the packages' own tests with their data, pages for notebooks and for
TensorBoard, parts of libraries that nothing of ours loads, and the libraries' symbols, which only a debugger
reads. TensorFlow's headers take 430 MB and the symbols 340 MB. pip stays: Beam's worker launcher asks it what
is installed. The texts of licences stay, also those of code that is linked into the libraries.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_LICENCE = re.compile("licen[cs]e|copying|notice|copyright", re.IGNORECASE)

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

_UNLOADED = (
    "google/cloud/aiplatform_v1*/services/*/transports/rest_asyncio.py",
    "google/cloud/aiplatform_v1*/services/*/transports/__pycache__/rest_asyncio.*.pyc",
    "pyarrow/_flight.*.so",
    "pyarrow/libarrow_flight.so*",
    "pyarrow/libarrow_python_flight.so*",
    "tensorboard/plugins/projector/tf_projector_plugin",
    "tensorboard/webfiles.zip",
    "tensorflow/compiler/mlir/stablehlo/stablehlo_extension.so",
    "tensorflow/compiler/tf2xla/ops/_xla_ops.so",
    "tensorflow_model_analysis/static",
)
"""Parts that their packages do without until somebody asks for them: Vertex AI's transport by asyncio, Arrow
Flight, what TensorBoard and TFMA show in a browser, and two libraries of TensorFlow that no module of it
imports: a dialect of MLIR, and operations that libtensorflow_cc has, too."""

_FOR_COMPILERS = {".a", ".c", ".cc", ".cpp", ".h", ".hpp", ".pxd", ".pxi", ".pyi", ".pyx"}

_STRIPPED = (
    "apache_beam",
    "cryptography",
    "fastavro",
    "ml_metadata",
    "obstore",
    "pyarrow",
    "tensorflow",
    "tfx_bsl",
    "zstandard",
)
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
            _empty(path)
        else:
            path.unlink()
    libraries = [path for name in _STRIPPED for path in (packages / name).rglob("*.so*") if _is_large(path)]
    if libraries:
        subprocess.run(["strip", "--strip-unneeded", *map(str, libraries)], check=True)  # noqa: S607


def _unneeded(packages: Path) -> Iterator[Path]:
    yield from packages.glob("*/include")
    # Folders named testing stay, because other packages import them.
    for name in ("tests", "testdata"):
        yield from (each for each in packages.rglob(name) if each.is_dir())
    for name in _WITH_TESTS_BESIDE:
        for pattern in ("*_test.py", "*_test.*.pyc"):
            yield from (packages / name).rglob(pattern)
    for pattern in _UNLOADED:
        yield from packages.glob(pattern)
    # Parts of google-cloud-aiplatform that its other parts do not import.
    yield from (packages / name for name in ("vertexai", "agentplatform") if (packages / name).is_dir())
    yield from (each for each in packages.rglob("*.*") if each.suffix in _FOR_COMPILERS and each.is_file())


def _empty(folder: Path) -> None:
    """Remove all of a folder but the texts of licences."""
    for here, _, names in os.walk(folder, topdown=False):
        for name in names:
            if not _LICENCE.match(name):
                Path(here, name).unlink()
        if not any(Path(here).iterdir()):
            Path(here).rmdir()


def _is_large(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size >= _LARGE


if __name__ == "__main__":
    (found,) = Path(sys.argv[1]).glob("lib/python3*/site-packages")
    slim(found)
