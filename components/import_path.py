"""PYTHONPATH of the processes that run our modules."""

import os
from collections.abc import Iterable
from pathlib import Path

from slipway.components.project import IS_CHECKOUT, OWN_FOLDER, PROJECT_ROOT


def import_path(root: Path, *, inherited: str, first: Iterable[Path] = ()) -> str:
    """Return a PYTHONPATH on which the user's folders come before ours.

    A folder with another Slipway, such as a second checkout, comes after ours: no process may mix the two.
    An installed one is found without being named: its folder would bring all other packages along.

    Args:
        root: the project's folder; in a checkout it holds this Slipway.
        inherited: PYTHONPATH as the user has set it; may be empty.
        first: folders that come before all others.
    """
    given = [*map(str, first), *filter(None, inherited.split(os.pathsep))]
    others = [folder for folder in given if _holds_slipway(folder)]
    users = [folder for folder in given if folder not in others]
    ours = [str(OWN_FOLDER)] if IS_CHECKOUT and PROJECT_ROOT != OWN_FOLDER else []
    return os.pathsep.join(dict.fromkeys([*users, str(root), *ours, *others]))


def _holds_slipway(folder: str | Path) -> bool:
    return Path(folder, "slipway", "__init__.py").exists()
