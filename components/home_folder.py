"""Expands paths in the user's home folder: shells expand `~` only at the start of a word."""

import os


def at_home(path: str) -> str:
    """Expand a leading `~` to the home folder; without a known home folder, leave it.

    `~user` stays, too: a file may be called so.
    """
    is_in_it = path == "~" or path.startswith("~/")
    return os.path.expanduser(path) if is_in_it else path  # noqa: PTH111  (pathlib's raises without a home)
