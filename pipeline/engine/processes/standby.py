"""A warm process that waits for runs of the command line: `python local_runner.py warm`.

It listens on a socket in a folder that only its owner may enter, and ends after a time without use. The
socket's name is a digest of the code that the process has imported and of everything it inherited, so that
a run with other code or another environment does not find it, and imports TFX itself.
"""

import contextlib
import hashlib
import os
import resource
import signal
import site
import socket
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from slipway.components.lock_file import WAIT_S, locked_folder
from slipway.components.project import OWN_FOLDER
from slipway.components.python_process import start_in_background
from slipway.pipeline.engine.processes.os_processes import children, is_stopped
from slipway.pipeline.engine.processes.warm import WarmProcess, WarmServer, import_ahead
from slipway.pipeline.errors import UsageError
from slipway.pipeline.fingerprint.fingerprint import canonical_json
from slipway.pipeline.wiring.keras_choice import KERAS_VARIABLES

IMPORTS, WAITS = ".importing", ".socket"
"""Suffixes of a socket's name: while its process imports TFX, and afterwards."""

_BOUND_LIMIT_S = 10.0
# Variables that differ between commands or terminals, and that no library reads.
_UNREAD = frozenset({"_", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "TERM_SESSION_ID", "WINDOWID"})
_LIMITS = tuple(name for name in dir(resource) if name.startswith("RLIMIT_"))
_PROCESS = Path("/proc/self")
_RIGHTS = ("Groups:", "Cap", "NoNewPrivs:", "Seccomp:")  # lines of its `status`
_CREDENTIALS = struct.Struct("3i")  # of SO_PEERCRED: pid, uid, gid


class Standby(WarmProcess):
    """A warm process that any run can use; a run that loses it imports TFX itself."""

    is_spare = True


def find() -> Standby | None:
    """Return the process that this command's run can be forked from.

    None if there is none, or it still imports.
    """
    with contextlib.suppress(UsageError, OSError):
        folder = _folder()
        if any(folder.glob(f"*{WAITS}")):  # computing the name takes time, so look for any process first
            return _connect(folder / (_name() + WAITS))
    return None


def begin(idle_s: float) -> int:
    """Start a warm process in the background, unless there is one already; return its process id.

    Args:
        idle_s: seconds without use after which the process ends.

    Raises:
        UsageError: the folder for its socket is not safe or cannot be created, or no process can be
            started.
    """
    folder = _folder()
    _make(folder)
    address = _folder() / _name()
    if (there := _either(address)) is not None:
        with there:
            return there.pid
    module = "slipway.pipeline.engine.processes.standby"
    try:
        process = start_in_background(module, str(address), str(idle_s), variables=KERAS_VARIABLES)
    except OSError as error:
        raise UsageError(
            f"The warm process cannot be started: {error.strerror}.",
            hint="runs work without one; see ulimit -u and free -h for the room there is",
        ) from error
    # Wait until the process can be found: the next command may be the one that ends it.
    until = time.monotonic() + _BOUND_LIMIT_S
    while process.poll() is None and time.monotonic() < until:
        if (there := _either(address)) is not None:
            with there:
                return there.pid
        time.sleep(0.02)
    return process.pid


def waiting() -> list[int]:
    """Return the process ids of all warm processes of this user, from any checkout and terminal.

    Raises:
        UsageError: the folder of their sockets is not safe or cannot be read.
    """
    found = []
    for address in sorted([*_folder().glob(f"*{IMPORTS}"), *_folder().glob(f"*{WAITS}")]):
        if (there := _connect(address)) is not None:
            with there:
                found.append(there.pid)
    return found


def end() -> tuple[list[int], list[int]]:
    """End the warm processes that no run uses.

    Returns:
        The process ids of the ended processes, and of those still in use.

    Raises:
        UsageError: as `waiting`.
    """
    found = waiting()
    used = [pid for pid in found if any(children(pid))]
    ended = [pid for pid in found if pid not in used]
    for pid in ended:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    return ended, used


def _folder() -> Path:
    """Return the folder of the sockets, which need not exist.

    Raises:
        UsageError: others may enter the folder, it belongs to another user, or it cannot be read.
    """
    parent = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(parent) / f"slipway-{os.getuid()}"
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return folder
    except OSError as error:  # its parent is a file, or a folder that only another user may enter
        raise _unusable(folder, "looked at", error) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise UsageError(
            f"{folder} must be a folder that only you can enter: whoever reaches a warm process's socket "
            "can run programs as you.",
            hint=f"check who made it, then rm -r {folder}",
        )
    return folder


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, "made", error) from error


def _unusable(folder: Path, deed: str, error: OSError) -> UsageError:
    is_named = bool(os.environ.get("XDG_RUNTIME_DIR"))
    named = "XDG_RUNTIME_DIR names" if is_named else "temporary files go to"
    remedy = "unset XDG_RUNTIME_DIR: the temporary folder is used then" if is_named else "set TMPDIR"
    return UsageError(
        f"{folder}, for the warm process's socket, cannot be {deed}: {error.strerror}; "
        f"{named} {folder.parent}.",
        hint=f"{remedy}; or make {folder.parent} a folder that you can write to",
    )


def _name() -> str:
    """Return the socket's name without suffix: digests of what a new process would import and inherit."""
    return f"{_digest(_imported())}-{_digest(_inherited())}"


def _digest(document: Mapping[str, object]) -> str:
    return hashlib.sha256(canonical_json(document).encode()).hexdigest()[:16]


def _imported() -> dict[str, object]:
    """Return our code and the installed packages by size and time, so that an edit leads to a new process."""
    sources = (
        file
        for folder in ("components", "pipeline", "schemas", "slipway")
        for file in sorted((OWN_FOLDER / folder).rglob("*.py"))
    )
    packages = map(Path, [*site.getsitepackages(), site.getusersitepackages()])
    return {
        "python": sys.executable,
        "code": {str(file): _state(file) for file in sources},
        "packages": {str(folder): _state(folder) for folder in packages},
    }


def _state(path: Path) -> list[int]:
    try:
        found = path.stat()
    except OSError:  # an editor's lock, which is a dangling link; a missing folder
        return []
    return [found.st_size, found.st_mtime_ns]


def _inherited() -> dict[str, object]:
    mask = os.umask(0o077)
    os.umask(mask)
    status = (_PROCESS / "status").read_text(encoding="utf-8")
    return {
        "environment": {name: value for name, value in os.environ.items() if name not in _UNREAD},
        "folder": str(Path.cwd()),
        "mask": mask,
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "cores": sorted(os.sched_getaffinity(0)),
        "limits": {name: list(resource.getrlimit(getattr(resource, name))) for name in _LIMITS},
        "group": (_PROCESS / "cgroup").read_text(encoding="utf-8"),
        # A run in a sandbox, such as one without a network, must not get out of it.
        "rights": [line for line in status.splitlines() if line.startswith(_RIGHTS)],
        "namespaces": sorted(str(each.readlink()) for each in (_PROCESS / "ns").iterdir()),
    }


@contextlib.contextmanager
def _short(address: Path) -> Iterator[str]:
    """Yield a path to the socket through its folder's descriptor: the kernel accepts at most 107 bytes."""
    folder = os.open(address.parent, os.O_PATH)
    try:
        yield f"/proc/self/fd/{folder}/{address.name}"
    finally:
        os.close(folder)


def _either(address: Path) -> Standby | None:
    """Return the process with that name, whether it still imports or not."""
    return _connect(Path(f"{address}{WAITS}")) or _connect(Path(f"{address}{IMPORTS}"))


def _connect(address: Path) -> Standby | None:
    line = socket.socket(socket.AF_UNIX)
    try:
        with _short(address) as path:
            line.connect(path)
        pid, user = _peer(line)
    except OSError:  # nobody listens
        line.close()
        return None
    if user != os.getuid() or is_stopped(pid):
        line.close()
        return None
    return Standby(line, pid)


def _peer(line: socket.socket) -> tuple[int, int]:
    """Return the process id and user id of the other end, as the kernel knows them."""
    found = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _ = _CREDENTIALS.unpack(found)
    return pid, user


def main() -> None:
    """Entry point: `python -m slipway.pipeline.engine.processes.standby FOLDER/NAME IDLE_S`."""
    name, idle_s = Path(sys.argv[1]), float(sys.argv[2])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    imports, waits = Path(f"{name}{IMPORTS}"), Path(f"{name}{WAITS}")
    with socket.socket(socket.AF_UNIX) as listener:
        with locked_folder(name.parent, wait_s=WAIT_S):  # others hold it for as long as they bind
            if (there := _either(name)) is not None:  # another process was faster
                with there:
                    return
            imports.unlink(missing_ok=True)
            with _short(imports) as path:
                listener.bind(path)
            listener.listen()
        try:
            import_ahead()
            was_edited = not name.name.startswith(_digest(_imported()))
            if was_edited:  # unknown whether before or after its import
                return
            imports.rename(waits)
            _serve(listener, idle_s)
        finally:
            # The names stay until the end, so that nobody starts a second process before this one is gone.
            for address in (imports, waits):
                address.unlink(missing_ok=True)


def _serve(listener: socket.socket, idle_s: float) -> None:
    server = WarmServer()
    used = time.monotonic()
    while (left_s := used + idle_s - time.monotonic()) > 0:
        if server.serve(listener.fileno(), timeout_s=left_s):
            line, _ = listener.accept()
            if _peer(line)[1] == os.getuid():
                server.add(line)
            else:
                line.close()
        if server.is_used:
            used = time.monotonic()


if __name__ == "__main__":
    main()
