"""The user's own commands after a push and at a run's end, looked for before there is anything to tell."""

import os
import shutil
from collections.abc import Sequence

from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.errors import ConfigError


def check_program(key: str, command: Sequence[str], *, none: str) -> None:
    """Reject a command whose program is not there, as it would be started: in the project's folder.

    Args:
        key: the key of the workload file that names it, for the message.
        command: program and arguments; empty: there is none to check.
        none: the `KEY=VALUE` that leaves it out, for a machine that is not meant to have it.

    Raises:
        ConfigError: the program is neither on the PATH nor, if its name has a `/`, an executable file.
    """
    if not command:
        return
    name = command[0]
    if shutil.which(str(PROJECT_ROOT / name) if "/" in name else name) is None:
        where = "a file that can be executed" if "/" in name else "a program on the PATH"
        raise ConfigError(
            f"{key}: {name!r} is not {where}",
            hint="a script of the project is named by a path with a '/', without '~' or '$VARIABLE', since "
            f"no shell reads it, and must be executable (chmod +x); where none is meant: --set '{none}'",
        )


def check_webhook(variable: str) -> None:
    """Reject a `notify.webhook_env` whose variable holds no address.

    Raises:
        ConfigError: names the variable and not what it holds, which is as secret as a password.
    """
    address = os.environ.get(variable, "")
    if not address.startswith(("https://", "http://")):
        held = "holds no http(s) address" if address else "is not set"
        raise ConfigError(
            f"notify.webhook_env: the environment variable {variable} {held}",
            hint="cron and services know none of a shell's variables: set it where they start the run; where "
            "none is meant: --set 'notify=null'",
        )
