"""The process that imports TFX once and forks one child per node.

Started by `engine_process.py`'s engine as `python -m pipeline.local.fork_server FD ENGINE_PID`; they talk over a
socket pair (channel.py):

    engine -> server    compile {target, run_id, parameters, beam_args}; reuse {executions};
                        start {node, attempt, log, result, progress}; signal {node, signum}
    server -> engine    graph {graph}; reused {results}; started {node, attempt, pid};
                        exited {node, attempt, code, peak_bytes}; refused {message, hint, traceback}

It stays single-threaded, so that forking is safe, and ends, with everything it started, when the engine is gone.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from components.errors import SlipwayError
from pipeline.local.channel import Channel
from pipeline.local.failure import describe_exception
from pipeline.local.processes import die_with_parent, signal_group
from pipeline.local.targets import load_pipeline

# getrusage(2) counts ru_maxrss in KiB on Linux.
_RSS_UNIT_BYTES = 1024


class ForkServer:
    """Serves one engine, for one run.

    Args:
        channel: the line to the engine.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._compiled: Any = None
        self._children: dict[int, dict[str, Any]] = {}
        self._to_import: list[str] = []
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> None:
        """Answers the engine until it closes the line; then ends every child."""
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._end)
        handlers: dict[str, Callable[[dict[str, Any]], None]] = {
            "compile": self._compile,
            "reuse": self._reuse,
            "start": self._start,
            "signal": self._signal,
        }
        while not self._channel.closed:
            # While nothing is asked for, import what later nodes need: the first node runs meanwhile.
            timeout_s = 0 if self._to_import else None
            readable, _, _ = select.select([self._channel, self._wake_read], [], [], timeout_s)
            if self._wake_read in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 4096)
            self._reap()
            if self._channel in readable:
                for message in self._channel.receive():
                    handlers[message.pop("op")](message)
            elif not readable and self._to_import:
                self._import_ahead(self._to_import.pop(0))
        self._end()

    def _compile(self, message: dict[str, Any]) -> None:
        try:
            from pipeline.local.compile import compile_pipeline

            pipeline = load_pipeline(message["target"])
            self._compiled = compile_pipeline(
                pipeline,
                run_id=message["run_id"],
                output=Path(message["target"]["output"]),
                parameters=message["parameters"],
                beam_args=message["beam_args"],
            )
        except Exception as error:  # noqa: BLE001 (user code may raise anything; the engine tells the user)
            traceback.print_exc()
            told = describe_exception(error, root=Path.cwd())
            self._channel.send({"event": "refused", **told, "traceback": traceback.format_exc()})
            return
        self._to_import = self._compiled.executor_modules()
        self._channel.send({"event": "graph", "graph": self._compiled.graph.to_json()})

    def _import_ahead(self, module: str) -> None:
        try:
            importlib.import_module(module)
        except Exception:  # noqa: BLE001 (the node's own import will fail again, and be reported as the node's failure)
            traceback.print_exc()

    def _reuse(self, message: dict[str, Any]) -> None:
        from pipeline.local.launch import reuse

        self._channel.send(
            {"event": "reused", "results": reuse(self._compiled, message["executions"])}
        )

    def _start(self, message: dict[str, Any]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_node(message, server)
        # Both sides set the group, so that it exists before either goes on.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, pid)
        self._children[pid] = message
        self._tell({"event": "started", "node": message["node"], "attempt": message["attempt"], "pid": pid})

    def _signal(self, message: dict[str, Any]) -> None:
        for pid, started in self._children.items():
            if started["node"] == message["node"]:
                signal_group(pid, message["signum"])
                # A stopped process takes no signal but SIGKILL until it is continued.
                signal_group(pid, signal.SIGCONT)

    def _reap(self) -> None:
        while self._children:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            started = self._children.pop(pid, None)
            if started is None:
                continue
            # What the node started and left behind goes with it.
            signal_group(pid, signal.SIGKILL)
            self._tell(
                {
                    "event": "exited",
                    "node": started["node"],
                    "attempt": started["attempt"],
                    "code": os.waitstatus_to_exitcode(status),
                    "peak_bytes": usage.ru_maxrss * _RSS_UNIT_BYTES,
                }
            )

    def _tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the engine is gone: serve() sees it and ends
            self._channel.send(message)

    def _end(self, _signum: int = 0, _frame: FrameType | None = None) -> NoReturn:
        for pid in self._children:
            signal_group(pid, signal.SIGKILL)
        os._exit(0)

    def _become_node(self, message: dict[str, Any], server: int) -> NoReturn:
        code = 1
        try:
            os.setpgid(0, 0)
            die_with_parent(signal.SIGKILL, parent=server)
            signal.set_wakeup_fd(-1)
            for signum in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(signum, signal.SIG_DFL)
            self._channel.close()
            _redirect_output(Path(message["log"]))
            os.environ["SLIPWAY_PROGRESS"] = message["progress"]
            code = _run_node(self._compiled, message)
        except BaseException:  # noqa: BLE001 (nothing may return into the server's loop)
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def _run_node(compiled: Any, message: dict[str, Any]) -> int:
    from absl import logging

    from pipeline.local.launch import launch

    logging.set_verbosity(logging.INFO)
    try:
        result = launch(compiled, message["node"])
    except Exception as error:  # noqa: BLE001 (a component may raise anything)
        traceback.print_exc()
        result = {"state": "failed", **describe_exception(error, root=Path.cwd())}
    path = Path(message["result"])
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(result), encoding="utf-8")
    partial.replace(path)
    return 0 if result["state"] != "failed" else 1


def _redirect_output(log: Path) -> None:
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(target)
    os.close(nothing)


def main() -> None:
    """Entry point: `python -m pipeline.local.fork_server FD ENGINE_PID`."""
    endpoint, engine = int(sys.argv[1]), int(sys.argv[2])
    die_with_parent(signal.SIGTERM, parent=engine)
    channel = Channel(socket.socket(fileno=endpoint))
    # Keras 3 throughout; transform would otherwise choose Keras 2 for the whole process.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")
    with contextlib.suppress(SlipwayError):
        ForkServer(channel).serve()


if __name__ == "__main__":
    main()
