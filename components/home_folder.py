"""Expands `~` in paths, since shells expand it only at the start of a word."""

import os


def at_home(path: str) -> str:
    """Expand a leading `~` to the home folder, or leave it if the home folder is unknown.

    `~user` is left as it is, since a file may have that name.
    """
    is_in_it = path == "~" or path.startswith("~/")
    return os.path.expanduser(path) if is_in_it else path  # noqa: PTH111  (pathlib's raises without a home)
