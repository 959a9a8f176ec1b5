"""PYTHONPATH of the processes that run our modules."""

import os
from collections.abc import Iterable
from pathlib import Path


def import_path(root: Path, *, inherited: str, first: Iterable[Path] = ()) -> str:
    """Return a PYTHONPATH on which the user's folders come before ours.

    A folder with another Slipway, such as a second checkout, comes after ours: no process may mix the two.

    Args:
        root: the folder that holds this Slipway.
        inherited: PYTHONPATH as the user has set it; may be empty.
        first: folders that come before all others.
    """
    given = [*map(str, first), *filter(None, inherited.split(os.pathsep))]
    others = [folder for folder in given if Path(folder, "slipway", "__init__.py").exists()]
    users = [folder for folder in given if folder not in others]
    return os.pathsep.join(dict.fromkeys([*users, str(root), *others]))
