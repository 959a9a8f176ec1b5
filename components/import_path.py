"""Builds the PYTHONPATH of processes that run our modules."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from slipway.components.project import IS_CHECKOUT, OWN_FOLDER, PROJECT_ROOT


def import_path(
    root: Path, *, inherited: str, first: Iterable[Path] = (), is_same_python: bool = True
) -> str:
    """Return a PYTHONPATH on which the user's folders come before ours.

    A folder with another Slipway, such as a second checkout, comes after ours: no process may mix the two.
    An installed Slipway is importable without an entry, which would also add all other packages of its
    site-packages folder. A different interpreter cannot import it, and gets a folder that links to it.

    Args:
        root: the project's folder; in a checkout it holds this Slipway.
        inherited: PYTHONPATH as the user has set it; may be empty.
        first: folders that come before all others.
        is_same_python: whether the processes run in this process's interpreter.
    """
    given = [*map(str, first), *filter(None, inherited.split(os.pathsep))]
    others = [folder for folder in given if Path(folder, "slipway", "__init__.py").exists()]
    users = [folder for folder in given if folder not in others]
    if IS_CHECKOUT:
        ours = [str(OWN_FOLDER)] if PROJECT_ROOT != OWN_FOLDER else []
    else:
        ours = [] if is_same_python else [str(_folder_of_the_link())]
    return os.pathsep.join(dict.fromkeys([*users, str(root), *ours, *others]))


@cache
def _folder_of_the_link() -> Path:
    """Create a temporary folder that holds only a link to our package; it is removed at exit."""
    folder = Path(tempfile.mkdtemp(prefix="slipway-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "slipway").symlink_to(OWN_FOLDER)
    return folder
