"""Explains a failure in one or two lines that a stranger understands. Pure."""

import signal
import site
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NotRequired, TypedDict, cast

from slipway.components.errors import ComponentError, GateStopError, SlipwayError
from slipway.components.missing_key import missing_key

# Our own code: its frames say less than the user's; those of the engine say nothing.
_ENGINE = Path(__file__).parents[1]
_COMPONENTS = _ENGINE.parent / "components"
_INSTALLED = tuple(
    Path(folder)
    for folder in {*site.getsitepackages(), *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))}
)


class Cause(TypedDict):
    """A failure's cause.

    `message` is one line; `hint` and `where` (`file:line`) may be empty; `verdict` is there where it is a
    gate that said no, and no fault of anyone's code; `start`, where an earlier node has to run again.
    """

    message: str
    hint: str
    where: str
    verdict: NotRequired[dict[str, object]]
    start: NotRequired[str]


class Failed(Cause):
    """A cause as the node's process reports it; `lacks_inputs`: it could not start without them."""

    state: Literal["failed"]
    lacks_inputs: NotRequired[bool]
    is_preempted: NotRequired[bool]


def failed(cause: Cause) -> Failed:
    """A cause as the result of a node."""
    return cast(Failed, {"state": "failed", **cause})


# A full disk is the cause to report, for all else fails after it as well; the metadata store names no file.
_FULL_DISK = (("No space left on device", "Disk quota exceeded"), ("database or disk is full",))

PREEMPTED = Cause(message="ended from outside (SIGTERM); its progress is kept", hint="", where="")


def describe_exception(error: BaseException, *, root: Path) -> Cause:
    """The cause of an exception, with the place in the user's code if there is one.

    Args:
        root: the user's folder; a place inside it is reported relative to it.
    """
    if isinstance(error, SlipwayError):
        # As texts: a component of the user's may have raised it with anything.
        cause = Cause(message=str(error.message), hint=str(error.hint or ""), where="")
        if isinstance(error, GateStopError):
            cause["verdict"] = error.verdict
        if isinstance(error, ComponentError) and error.start:
            cause["start"] = error.start
        return cause
    told = next((e for words in _FULL_DISK for e in _chain(error) if _says(e, words)), error)
    if missing := missing_key(told):
        message = f"{type(told).__name__}: {missing.words}"
        return Cause(message=message, hint=missing.there, where=_place(error, root))
    lines = [line.strip() for line in str(told).splitlines() if line.strip()]
    # TensorFlow and Beam put the sentence first and the graph's dump after it.
    text = lines[0] if lines else ""
    if text.endswith(":") and len(lines) > 1:  # "Graph execution error:", and then what it was
        text = f"{text} {lines[1]}"
    name = type(told).__name__
    hint = "make room on the disk" if any(_says(told, words) for words in _FULL_DISK) else ""
    return Cause(message=f"{name}: {text}" if text else name, hint=hint, where=_place(error, root))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and its causes, the latest first."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def _says(error: BaseException, words: Sequence[str]) -> bool:
    return any(each in str(error) for each in words)


def _place(error: BaseException, root: Path) -> str:
    """The deepest frame in the user's code, otherwise in a component of ours."""
    frames = [frame for e in _chain(error) for frame in reversed(traceback.extract_tb(e.__traceback__))]
    places = [(Path(frame.filename), frame.lineno) for frame in frames]
    candidates = [(path, line) for path, line in places if path.is_absolute() and not _is_installed(path)]
    for ours in ((_ENGINE, _COMPONENTS), (_ENGINE,)):
        for path, line in candidates:
            if not any(path.is_relative_to(folder) for folder in ours):
                shown = path.relative_to(root) if path.is_relative_to(root) else path
                return f"{shown}:{line}"
    return ""


def _is_installed(path: Path) -> bool:
    return "site-packages" in path.parts or any(path.is_relative_to(folder) for folder in _INSTALLED)


def describe_exit(code: int, *, peak_bytes: int) -> Cause:
    """The cause for a process that ended without reporting one.

    Args:
        code: the exit code, or the negative signal number as `subprocess` gives it.
        peak_bytes: the most memory that the process held; 0 if unknown.
    """
    memory = f"; its memory peaked at {peak_bytes / 2**30:.1f} GiB" if peak_bytes else ""
    if code >= 0:
        return Cause(message=f"its process ended with code {code} and no result", hint="", where="")
    name = _signal_name(-code)
    if -code == signal.SIGKILL:
        message = f"killed ({name}{memory}): by a person, or by the system for lack of memory"
        return Cause(message=message, hint="see `dmesg | tail` for an out-of-memory kill", where="")
    if -code in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP):
        return Cause(message=f"crashed in native code ({name}{memory})", hint="", where="")
    return Cause(message=f"ended by {name}", hint="", where="")


def _signal_name(signum: int) -> str:
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"SIGRTMIN+{signum - signal.SIGRTMIN}"  # Python names only the first and the last of these
