"""Describes a failure in one or two lines for users who do not know the internals. Pure."""

import signal
import site
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NotRequired, TypedDict, cast

from slipway.components.errors import ComponentError, GateStopError, SlipwayError
from slipway.components.framework_errors import reason, rewritten, shortened, words
from slipway.components.missing_key import missing_key

# Frames in our own code: less useful than those in the user's code; the engine's are never useful.
_ENGINE = Path(__file__).parents[1]
_COMPONENTS = _ENGINE.parent / "components"
_INSTALLED = tuple(
    Path(folder)
    for folder in {*site.getsitepackages(), *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))}
)

_AUTOGRAPH = "__autograph_generated_file"


class Cause(TypedDict):
    """The cause of a failure.

    `message` is one line. `hint` and `where` (`file:line`) may be empty. `verdict` is present if a gate
    rejected the data or the model. `start` is present if an earlier node has to run again.
    """

    message: str
    hint: str
    where: str
    verdict: NotRequired[dict[str, object]]
    start: NotRequired[str]


class Failed(Cause):
    """A cause as reported by the node's process.

    `lacks_inputs`: the node could not start because inputs are missing. `is_preempted`: it was terminated
    from outside and kept its state.
    """

    state: Literal["failed"]
    lacks_inputs: NotRequired[bool]
    is_preempted: NotRequired[bool]


def failed(cause: Cause) -> Failed:
    """Return a cause as the result of a node."""
    return cast(Failed, {"state": "failed", **cause})


# A full disk is reported first, because it makes everything after it fail. The metadata store's message
# (the second group) names no file.
_FULL_DISK = (("No space left on device", "Disk quota exceeded"), ("database or disk is full",))

PREEMPTED = Cause(message="ended from outside (SIGTERM); its progress is kept", hint="", where="")


def describe_exception(error: BaseException, *, root: Path) -> Cause:
    """Return the cause of an exception, with its location in the user's code if there is one.

    Args:
        root: the user's folder; a location inside it is reported relative to it.
    """
    if isinstance(error, SlipwayError):
        # Converted to text: a user's component may have passed any object.
        cause = Cause(message=str(error.message), hint=str(error.hint or ""), where="")
        if isinstance(error, GateStopError):
            cause["verdict"] = error.verdict
        if isinstance(error, ComponentError) and error.start:
            cause["start"] = error.start
        return cause
    told = next((e for texts in _FULL_DISK for e in _chain(error) if _says(e, texts)), error)
    if missing := missing_key(told):
        message = f"{type(told).__name__}: {missing.words}"
        return Cause(message=message, hint=missing.there, where=_place(error, root))
    name, said = type(told).__name__, words(told)
    if of_rewritten := rewritten(said):
        name, said = of_rewritten.kind, of_rewritten.words
    lines = reason(said)
    # TensorFlow and Beam put the message first and a dump of the graph after it.
    text = lines[0] if lines else ""
    if text.endswith(":") and len(lines) > 1:  # followed by the actual error
        text = f"{text} {lines[1]}"
    hint = "make room on the disk" if is_full_disk(words(told)) else ""
    return Cause(message=f"{name}: {shortened(text)}" if text else name, hint=hint, where=_place(error, root))


def is_full_disk(message: str) -> bool:
    """Return True if an error's message says that there is no room on a disk."""
    return any(each in message for texts in _FULL_DISK for each in texts)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and its causes, the latest first."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def _says(error: BaseException, texts: Sequence[str]) -> bool:
    return any(each in words(error) for each in texts)


def _place(error: BaseException, root: Path) -> str:
    """Return the deepest frame in the user's code, otherwise in one of our components."""
    places = [place for e in _chain(error) for place in _frames(e)]
    for e in _chain(error):
        if isinstance(e, SyntaxError) and e.filename:  # no frame is in a file that cannot be parsed
            places.insert(0, (Path(e.filename), e.lineno or 1))
    candidates = [(path, line) for path, line in places if path.is_absolute() and not _is_foreign(path)]
    for ours in ((_ENGINE, _COMPONENTS), (_ENGINE,)):
        for path, line in candidates:
            if not any(path.is_relative_to(folder) for folder in ours):
                shown = path.relative_to(root) if path.is_relative_to(root) else path
                return f"{shown}:{line}"
    return ""


def _frames(error: BaseException) -> Iterator[tuple[Path, int]]:
    """Yield the lines of an exception, the deepest first: where AutoGraph has rewritten the code, its own."""
    told = rewritten(words(error))
    for file, line in reversed(told.frames if told else []):
        yield Path(file), line
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        yield Path(frame.filename), frame.lineno or 0


def _is_foreign(path: Path) -> bool:
    """Return True for a file of an installed package, or one that AutoGraph has written."""
    if path.name.startswith(_AUTOGRAPH):
        return True
    return "site-packages" in path.parts or any(path.is_relative_to(folder) for folder in _INSTALLED)


def describe_exit(code: int, *, peak_bytes: int) -> Cause:
    """Return the cause for a process that ended without reporting one.

    Args:
        code: the exit code, or the negative signal number, as in `subprocess`.
        peak_bytes: the peak memory of the process; 0 if unknown.
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
        return f"SIGRTMIN+{signum - signal.SIGRTMIN}"  # Python names only the first and last real-time signal
