"""Finds the Python that trains. Imports no TensorFlow."""

import shutil
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.components.project import PROJECT_ROOT


def find_interpreter(name: str) -> str:
    """Return the path of an interpreter.

    Args:
        name: an absolute path, a path relative to the project's folder, or a name on the PATH.

    Raises:
        ComponentError: there is none, or it is not executable.
    """
    path = str(PROJECT_ROOT / Path(name).expanduser()) if "/" in name else name
    found = shutil.which(path)
    if found is None:
        raise ComponentError(
            f"train.interpreter ({name!r}) is not an executable program",
            hint="name a Python that has keras, numpy, tensorflow and the backend; `make jax` makes "
            ".venv-jax/bin/python",
        )
    return found
