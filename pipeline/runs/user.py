"""The name of the acting user, for records."""

import getpass
import os


def user_name() -> str:
    """Return the user's name, or the user's number if it has no name, e.g. in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
