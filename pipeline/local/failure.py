"""What went wrong, in one or two lines that a stranger understands. Pure."""

import signal
import traceback
from pathlib import Path
from typing import TypedDict

from components.errors import SlipwayError

# Folders inside the project whose frames say nothing to the user about his own code.
_OURS = ("pipeline", ".venv")


class Cause(TypedDict):
    """A failure's cause: `message` in one line, `hint` (may be empty), `where` as `file:line` (may be empty)."""

    message: str
    hint: str
    where: str


def describe_exception(error: BaseException, *, root: Path) -> Cause:
    """The cause of an exception, with the place in the user's code where there is one.

    Args:
        error: what was raised.
        root: the project's folder; the deepest frame inside it that is not the engine's own is the user's.
    """
    if isinstance(error, SlipwayError):
        return Cause(message=error.message, hint=error.hint, where="")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # TensorFlow and Beam put the sentence first and the graph's dump after it.
    text = lines[0] if lines else ""
    name = type(error).__name__
    return Cause(message=f"{name}: {text}" if text else name, hint="", where=_users_frame(error, root))


def _users_frame(error: BaseException, root: Path) -> str:
    seen: BaseException | None = error
    while seen is not None:
        for frame in reversed(traceback.extract_tb(seen.__traceback__)):
            path = Path(frame.filename)
            if path.is_relative_to(root):
                inside = path.relative_to(root)
                if inside.parts[0] not in _OURS and "site-packages" not in inside.parts:
                    return f"{inside}:{frame.lineno}"
        seen = seen.__cause__ or seen.__context__
    return ""


def describe_exit(code: int, *, peak_bytes: int) -> Cause:
    """The cause of a process that ended without telling one.

    Args:
        code: the exit code, or the negative signal number as `subprocess` gives it.
        peak_bytes: the most memory that the process held.
    """
    memory = f"; its memory peaked at {peak_bytes / 2**30:.1f} GiB" if peak_bytes else ""
    if code >= 0:
        return Cause(message=f"its process ended with code {code} and no result", hint="", where="")
    name = signal.Signals(-code).name
    if -code == signal.SIGKILL:
        message = f"killed (SIGKILL{memory}): by a person, or by the system for lack of memory"
        return Cause(message=message, hint="see `dmesg | tail` for an out-of-memory kill", where="")
    if -code in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE):
        return Cause(message=f"crashed in native code ({name}{memory})", hint="", where="")
    return Cause(message=f"ended by {name}", hint="", where="")
