"""Finds the Python that trains. Imports no TensorFlow."""

import os
import shutil

from slipway.components.errors import ComponentError
from slipway.components.project import PROJECT_ROOT


def find_interpreter(name: str) -> str:
    """Return the path of an interpreter.

    Args:
        name: an absolute path, a path relative to the project's folder, or a name on the PATH.

    Raises:
        ComponentError: there is none, or it is not executable.
    """
    found = shutil.which(place(name))
    if found is None:
        raise ComponentError(
            f"train.interpreter ({name!r}) is not an executable program",
            hint="name a Python that has keras, numpy, tensorflow and the backend; `make jax` makes "
            ".venv-jax/bin/python",
        )
    return found


def place(name: str) -> str:
    """Return the path of an interpreter whose name has a `/`; others are names on the `PATH`."""
    path = os.path.expanduser(name)  # noqa: PTH111  (pathlib's raises without a home)
    return str(PROJECT_ROOT / path) if "/" in name else name
