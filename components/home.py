"""Paths that begin in the user's home folder: shells expand only those that are words of their own."""

import os


def at_home(path: str) -> str:
    """The path with the home folder for a leading `~`; as it is, where none is known.

    `~user` stays, too: a file may be called so.
    """
    is_in_it = path == "~" or path.startswith("~/")
    return os.path.expanduser(path) if is_in_it else path  # noqa: PTH111  (pathlib's raises without a home)
