"""Runs a command and watches what it listens on, in the kernel's own tables of sockets."""

import os
import socket
import struct
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_LOOK_S = 0.05
_TCP_LISTENS = 0x0A
# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST_AND_DUMP = 4, 20, 0x301
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI48x")
_SOCKET = struct.Struct("=B3x2s2x16s16x4x8x16xI")  # family, port, address; the inode
_UNIX_LISTENS = 0x10000  # __SO_ACCEPTCON
_LOOPBACK = ("127.", "[::1]", "[::ffff:127.")


@dataclass(frozen=True)
class Listener:
    """A socket that a process of the command listened on.

    Attributes:
        address: a host with its port, or the path of a Unix socket.
        command: the process's arguments.
        is_private: whether no other machine reaches it; a Unix socket: no other user.
    """

    address: str
    command: str
    is_private: bool


@dataclass
class Finished:
    """A command that has ended; the first fields are those of `subprocess.CompletedProcess`.

    Attributes:
        listeners: what its processes listened on.
    """

    args: Sequence[str]
    returncode: int
    stdout: str
    stderr: str
    listeners: list[Listener] = field(default_factory=list)


def run_watched(command: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float) -> Finished:
    """Runs a command to its end.

    Raises:
        subprocess.TimeoutExpired: it took longer; it is killed.
    """
    ended = threading.Event()
    listeners: list[Listener] = []
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=cwd, env=env, stdout=pipe, stderr=pipe, text=True) as process:
        watcher = threading.Thread(target=_watch, args=(process.pid, listeners, ended))
        watcher.start()
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except BaseException:
            process.kill()
            raise
        finally:
            ended.set()
            watcher.join()
    return Finished(command, process.returncode, stdout, stderr, listeners)


def _watch(root: int, found: list[Listener], ended: threading.Event) -> None:
    known: set[int] = set()
    while not ended.wait(_LOOK_S):
        addresses = {inode: each for inode, each in listening().items() if inode not in known}
        if not addresses:
            continue  # as nearly always: processes need not be walked
        known |= addresses.keys()
        _find(root, addresses, found)


def _find(root: int, addresses: dict[int, str], found: list[Listener]) -> None:
    for pid in _descendants(root):
        command = _command(pid)  # before its sockets: it may end, and has no words after that
        for inode in addresses.keys() & _sockets_of(pid):
            address = addresses.pop(inode)
            found.append(Listener(address, command or _command(pid), is_private(address)))


def listeners_of(root: int) -> list[Listener]:
    """Return the addresses that a process and its descendants listen on now."""
    found: list[Listener] = []
    _find(root, listening(), found)
    return found


def listening() -> dict[int, str]:
    """The addresses that anything on this machine listens on, by the inode of the socket."""
    found: dict[int, str] = {}
    for family in (socket.AF_INET, socket.AF_INET6):
        found |= _tcp_listeners(family)
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = line.split()
        if int(words[3], 16) & _UNIX_LISTENS:
            found[int(words[6])] = words[7] if len(words) > 7 else ""
    return found


def _tcp_listeners(family: socket.AddressFamily) -> dict[int, str]:
    """Asked of the kernel directly: for /proc/net/tcp it walks through all its buckets, 3 ms each time."""
    wanted = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, 1 << _TCP_LISTENS)
    request = _HEADER.pack(_HEADER.size + len(wanted), _SOCK_DIAG_BY_FAMILY, _REQUEST_AND_DUMP, 0, 0) + wanted
    found: dict[int, str] = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as line:
        line.send(request)
        while True:
            answer = line.recv(1 << 16)
            while answer:
                size, kind, *_ = _HEADER.unpack_from(answer)
                if kind == _DONE:
                    return found
                if kind == _ERROR:  # a kernel without IPv6 has none of it
                    code = -struct.unpack_from("=i", answer, _HEADER.size)[0]
                    if family == socket.AF_INET6:
                        return found
                    raise OSError(code, os.strerror(code))
                _, port, host, inode = _SOCKET.unpack_from(answer, _HEADER.size)
                found[inode] = f"{_host(host, family)}:{int.from_bytes(port)}"
                answer = answer[size + 3 & ~3 :]


def is_private(address: str) -> bool:
    """Whether an address is on loopback, or a Unix socket in a folder private to this user."""
    if not address.startswith("/"):
        return address.startswith(_LOOPBACK)
    try:
        folder = Path(address).parent.stat()
    except OSError:
        return False
    return folder.st_uid == os.getuid() and not folder.st_mode & 0o077


def _host(address: bytes, family: socket.AddressFamily) -> str:
    shown = socket.inet_ntop(family, address[: 16 if family == socket.AF_INET6 else 4])
    return f"[{shown}]" if family == socket.AF_INET6 else shown


def _descendants(root: int) -> set[int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _sockets_of(pid: int) -> set[int]:
    found = set()
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(descriptor)  # noqa: PTH115  (a name of no file)
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    except OSError:
        pass  # it has ended
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
