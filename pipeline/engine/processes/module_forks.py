"""Forks Python modules from a warm process for nodes that request them (through `python_process`).

Isolated scripts (`isolated_script`), which must not be forks, are started in new processes, possibly ahead.
"""

import atexit
import contextlib
import gc
import importlib
import json
import logging
import multiprocessing.process
import multiprocessing.util
import os
import socket
import sys
import tempfile
import threading
import traceback
import weakref
from collections.abc import Mapping, Sequence
from typing import NoReturn, NotRequired, TypedDict

from slipway.components import python_process
from slipway.pipeline.engine.processes.os_processes import join_group
from slipway.pipeline.engine.processes.random_draws import draw_anew
from slipway.pipeline.engine.processes.scripts_ahead import ScriptsAhead

_REQUEST_BYTES = 1 << 20
# The connection that reports the process's end, its output, its errors, and a connection to the requester.
_MAX_DESCRIPTORS = 4


class _Request(TypedDict):
    """A request of `python_process`: a module, or a script by its path."""

    module: NotRequired[str]
    script: NotRequired[str]
    arguments: list[str]
    environment: dict[str, str]


class ModuleForks:
    """The connections to the nodes, and the processes that were forked for them.

    A process joins the group of the node that requested it, so that it does not outlive the node.
    """

    def __init__(self) -> None:
        self.scripts = ScriptsAhead()
        self._lines: dict[int, tuple[socket.socket, int]] = {}
        # For each process: the connection that reports its end, and the one that it was requested on.
        self._running: dict[int, tuple[socket.socket, socket.socket]] = {}

    def serve(self, line: socket.socket, *, node: int) -> None:
        """Serve requests on the connection, from the node with that process id, from now on."""
        self._lines[line.fileno()] = (line, node)

    def descriptors(self) -> list[int]:
        """Return the descriptors to pass to `select`."""
        return list(self._lines)

    def owns(self, pid: int) -> bool:
        """Return True if the process was started for a node."""
        return pid in self._running

    def abandoned(self) -> list[int]:
        """Return the processes whose requester has closed its connection."""
        return [pid for pid, (_, line) in self._running.items() if line.fileno() < 0]

    def answer(self, descriptor: int) -> None:
        """Read one request and fork; forget the connection if the node has closed it."""
        line, node = self._lines[descriptor]
        # The request is one line; the descriptors for the new process's output arrive with its first byte.
        data, descriptors, _, _ = socket.recv_fds(line, _REQUEST_BYTES, _MAX_DESCRIPTORS)
        while data and not data.endswith(b"\n"):
            more = line.recv(_REQUEST_BYTES)
            data = data + more if more else b""
        if not data:
            del self._lines[descriptor]
            line.close()
            return
        event_descriptor, *descriptors = descriptors
        events = socket.socket(fileno=event_descriptor)
        request: _Request = json.loads(data)
        try:
            pid = self._start(request, descriptors, node, events)
        except OSError as error:
            self._tell(events, {"error": error.strerror or str(error)})
            events.close()
            return
        finally:
            for received in descriptors:
                os.close(received)
        self._running[pid] = events, line
        self._tell(events, {"pid": pid})

    def _start(self, request: _Request, descriptors: Sequence[int], node: int, events: socket.socket) -> int:
        if "script" in request:
            return self.scripts.give(
                request["script"], request["environment"], request["arguments"], descriptors, node=node
            )
        server = os.getpid()
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            events.close()
            _become_module(request, descriptors, group=node, server=server)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, node)
        return pid

    def ended(self, pid: int, code: int) -> None:
        """Report to the node that a process it requested has ended."""
        events, _ = self._running.pop(pid)
        with events:
            self._tell(events, {"code": code})

    def _tell(self, events: socket.socket, message: Mapping[str, object]) -> None:
        with contextlib.suppress(OSError):  # the node is gone, and its group with it
            events.sendall(json.dumps(message).encode() + b"\n")


def _become_module(request: _Request, descriptors: Sequence[int], *, group: int, server: int) -> NoReturn:
    code = 1
    try:
        _forget_the_servers_end()
        join_group(group, parent=server)
        for target, descriptor in zip((1, 2), descriptors, strict=False):
            os.dup2(descriptor, target)
        python_process.fork_channel = None
        environment = request["environment"]
        os.environ.clear()
        os.environ.update(environment)
        draw_anew()
        tempfile.tempdir = None  # cached from the environment of the parent process
        roots = environment.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:] = dict.fromkeys([*filter(None, roots), *sys.path])
        arguments = [*map(str, descriptors[2:]), *request["arguments"]]
        sys.argv = [request["module"], *arguments]
        code = importlib.import_module(request["module"]).main(arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # nothing may return into the server's loop
        traceback.print_exc()
    finally:
        _end(code)


def _forget_the_servers_end() -> None:
    """Leave to the server what is to be done at its end.

    Modules that register themselves once, for all that they are given, are registered anew, without what they
    hold of the server.
    """
    atexit._clear()
    atexit.register(logging.shutdown)
    for each in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        each.atexit = False
    atexit.register(weakref.finalize._exitfunc)  # type: ignore[attr-defined]
    # Its finalizers know the process that they were made in.
    multiprocessing.process._children.clear()  # type: ignore[attr-defined]
    atexit.register(multiprocessing.util._exit_function)  # type: ignore[attr-defined]


def _end(code: int) -> NoReturn:
    """End a fork in the order of `sys.exit`, but for the modules, which are the server's.

    The threads of the user's code are waited for, unless they are daemons, and what it has registered with
    `atexit` is called, such as what sends the last values to a tracker of experiments. What is left to the
    end of objects is lost, such as the last lines of a file that was not closed.
    """
    try:
        # Python calls these first; they have no public names.
        for step in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
            try:
                step()
            except BaseException:  # told, and on to the next, as Python does
                traceback.print_exc()
    finally:
        python_process.end_at_once(code)
