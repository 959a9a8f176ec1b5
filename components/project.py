"""Where the project is, and where Slipway's own files are: in a checkout, both are one folder.

Installed from a wheel, Slipway lies among the packages, and the project is the nearest folder from the
current one upwards whose `pyproject.toml` has a table `[tool.slipway]`, as `slipway init` writes it.
"""

import hashlib
import os
import re
from pathlib import Path

PROJECT_VARIABLE = "SLIPWAY_PROJECT"
"""Names the project's folder, by a path from the current one; the command `slipway` sets it to the project
that it works in, so that the processes that it starts work in the same one, wherever they are."""
OWN_FOLDER = Path(__file__).resolve().parents[1]
"""The folder that holds our pipeline/, components/ and schemas/."""
IS_CHECKOUT = (OWN_FOLDER / "slipway" / "__init__.py").is_file()
"""Whether this Slipway is imported from a checkout, and not from an installed wheel."""
INSTALL = "make setup" if IS_CHECKOUT else "pip install --no-deps -r requirements.lock"
"""What makes the environment, called in the project's folder."""

_TABLE = re.compile(r"^\[tool\.slipway\]", re.MULTILINE)


def find_project(start: Path) -> Path | None:
    """The nearest project's folder, from `start` upwards; None: it lies in none.

    Args:
        start: absolute.
    """
    return next((folder for folder in (start, *start.parents) if is_project(folder)), None)


def installed_version() -> dict[str, str]:
    """The version of an installed Slipway, by its name; {} for a checkout, which is known by its content.

    A wheel that was built anew has the same number, so a digest of its modules comes with it: the installer
    has noted one of each file (RECORD). The command's script and the bytecode are no part of it: they differ
    from one environment to the next.
    """
    if IS_CHECKOUT:
        return {}
    from importlib.metadata import distribution  # 20 ms, which most commands do not need

    installed = distribution("slipway")
    noted = (installed.read_text("RECORD") or "").splitlines()
    ours = sorted(line for line in noted if line.startswith("slipway/") and "/__pycache__/" not in line)
    digest = hashlib.sha256("\n".join(ours).encode()).hexdigest()[:16]
    return {"slipway": f"{installed.version} ({digest})"}


def is_project(folder: Path) -> bool:
    """Whether a folder's pyproject.toml has the table [tool.slipway]."""
    try:
        text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, ValueError):  # not there, not ours to read, or no text
        return False
    return _TABLE.search(text) is not None


def _project_root() -> Path:
    if named := os.environ.get(PROJECT_VARIABLE):
        return Path(named).resolve()
    if IS_CHECKOUT:
        return OWN_FOLDER
    try:
        here = Path.cwd()
    except OSError:  # the folder is gone
        return Path("/")
    return find_project(here) or here


PROJECT_ROOT = _project_root()
"""The folder that holds workloads/, schemas/ and output/; outside of any project, the current one."""
