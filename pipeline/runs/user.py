"""Who acts: the user's name, for what is kept on the record."""

import getpass
import os


def user_name() -> str:
    """The user's name, or number where that has none, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
