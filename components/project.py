"""Locates the project and Slipway's own files; in a checkout, both are the same folder.

When Slipway is installed from a wheel, it lies in site-packages, and the project is the nearest folder, from
the current one upwards, whose `pyproject.toml` has a table `[tool.slipway]`, as `slipway init` writes it.
"""

import hashlib
import os
import re
import stat
from pathlib import Path

PROJECT_VARIABLE = "SLIPWAY_PROJECT"
"""Environment variable with the project's folder, absolute or relative to the current one. The command
`slipway` sets it, so that its child processes use the same project whatever their current folder."""
OWN_FOLDER = Path(__file__).resolve().parents[1]
"""The folder that holds our pipeline/, components/ and schemas/."""
IS_CHECKOUT = (OWN_FOLDER / "slipway" / "__init__.py").is_file()
"""Whether this Slipway is imported from a checkout rather than an installed wheel."""
INSTALL = "make setup" if IS_CHECKOUT else "pip install --no-deps -r requirements.lock"
"""The command that sets up the environment, to be run in the project's folder."""

_TABLE = re.compile(r"^\[tool\.slipway\]", re.MULTILINE)


def find_project(start: Path) -> Path | None:
    """Return the nearest project folder from `start` upwards, or None if `start` is not in a project.

    A project is code that is run. Somebody else's in a folder that everybody may write to, such as /tmp, is
    passed over: it may have been put there for whoever works below.

    Args:
        start: an absolute path.
    """
    around = (start, *start.parents)
    return next((folder for folder in around if is_project(folder) and not _is_planted(folder)), None)


def installed_version() -> dict[str, str]:
    """Return `{"slipway": version}` for an installed Slipway; {} for a checkout, whose content identifies it.

    A rebuilt wheel keeps its version number, so the version includes a digest of the modules, made from the
    hashes that the installer recorded for each file (RECORD). The digest leaves out the command's script and
    the bytecode, which differ between environments.
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
    """Return True if a folder's pyproject.toml has the table [tool.slipway]."""
    try:
        text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, ValueError):  # missing, unreadable, or not text
        return False
    return _TABLE.search(text) is not None


def _is_planted(folder: Path) -> bool:
    """Return True if everybody may write to a folder, and its pyproject.toml is neither ours nor root's."""
    owner = (folder / "pyproject.toml").lstat().st_uid  # of a link, who made it
    return bool(folder.stat().st_mode & stat.S_IWOTH) and owner not in (0, os.geteuid())


def _project_root() -> Path:
    if named := os.environ.get(PROJECT_VARIABLE):
        return Path(named).resolve()
    if IS_CHECKOUT:
        return OWN_FOLDER
    try:
        here = Path.cwd()
    except OSError:  # the current folder was deleted
        return Path("/")
    return find_project(here) or here


PROJECT_ROOT = _project_root()
"""The folder that holds workloads/, schemas/ and output/; outside any project, the current folder."""
