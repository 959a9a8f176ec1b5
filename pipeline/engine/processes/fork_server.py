"""The process that imports TFX once and forks one child per node.

The engine (client.py) starts it as `python -m slipway.pipeline.engine.processes.fork_server FD PARENT_PID`
and talks to it over a socket pair (messages.py).

It starts no threads, so that forking is safe. When the engine is gone, it ends, with all processes it
started.
"""

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from slipway.components.accelerators import share_gpus
from slipway.components.errors import SlipwayError
from slipway.components.isolated_script import IsolatedScript
from slipway.components.large_imports import large_imports
from slipway.pipeline.engine.failure import Cause, describe_exception, failed
from slipway.pipeline.engine.launcher import Exited, Start, Started
from slipway.pipeline.engine.processes import messages
from slipway.pipeline.engine.processes.module_forks import ModuleForks
from slipway.pipeline.engine.processes.node_process import NodeProcess
from slipway.pipeline.engine.processes.os_processes import (
    adopt_orphans,
    children,
    die_with_parent,
    signal_group,
)
from slipway.pipeline.engine.processes.random_draws import drawing_state
from slipway.pipeline.engine.tfx.load_pipeline import check_target
from slipway.pipeline.engine.tfx.metadata_store_lock import serialize_store_calls
from slipway.pipeline.runs.run_target import IrRun, ModuleRun, Order

# getrusage(2) counts ru_maxrss in KiB on Linux.
_RSS_UNIT_BYTES = 1024
# Interval of checking process groups whose leader has ended; SIGCHLD reports most of their ends at once.
_LOOK_S = 0.2
# Time limit for the killed processes to disappear when the server ends.
_END_LIMIT_S = 3.0


class ForkServer:
    """The server of one engine, for one run."""

    node_process = NodeProcess

    def __init__(self, channel: messages.Channel) -> None:
        self._channel = channel
        self._compiled: Any = None
        self._nodes: dict[int, NodeProcess] = {}
        # Ended nodes whose process group still has members: `Exited` is sent when the last one has ended.
        self._ending: dict[int, tuple[NodeProcess, Exited]] = {}
        self._forks = ModuleForks()
        self._to_import: list[str] = []
        self._unseeded = b""
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> None:
        """Answer the engine until the connection closes; then kill every child."""
        adopt_orphans()
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._end)
        while not self._channel.closed:
            watched = [self._channel.fileno(), self._wake_read, *self._forks.descriptors()]
            readable, _, _ = select.select(watched, [], [], self._wait_s())
            if self._wake_read in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 4096)
            self._reap()
            for descriptor in set(readable).intersection(self._forks.descriptors()):
                self._forks.answer(descriptor)
            if self._channel.fileno() in readable:
                for message in self._channel.receive():
                    self._answer(message)
            elif not readable and self._to_import:
                self._import_ahead(self._to_import.pop(0))
        self._end()

    def _wait_s(self) -> float | None:
        # While no request arrives and the first node runs, import what later nodes need.
        if self._to_import:
            return 0
        return _LOOK_S if self._ending else None

    def _answer(self, request: messages.Request) -> None:
        match request:
            case messages.StartAhead(path, variables):
                with contextlib.suppress(OSError):  # the node tries again itself and reports the error
                    self._forks.scripts.start(path, IsolatedScript(path, variables).environment)
            case messages.Compile(order):
                self._compile(order)
            case messages.Settle() | messages.Reuse() | messages.FindPublished():
                self._ask_store(request)
            case Start():
                self._start(request)
            case messages.Signal(node, signum):
                self._signal(node, signum)

    def _compile(self, order: Order) -> None:
        try:
            with large_imports(keep=True):
                importlib.import_module("numpy")  # before the user's code, which may seed its generator
                self._unseeded = drawing_state()
                self._compiled = self.load(order)
        except (Exception, SystemExit) as error:  # user code may raise anything
            self._refuse(error)
            return
        self._to_import = self._compiled.executor_modules()
        self._tell(messages.Compiled(self._compiled.graph))

    def load(self, order: Order) -> Any:
        """Compile the order. The result has `graph` and `executor_modules()`; `node_process` receives it."""
        check_target(order.target)

        from slipway.pipeline.engine.processes.grpc_on_loopback import bind_to_loopback
        from slipway.pipeline.engine.tfx.beam_caching import cache_beam_lookups
        from slipway.pipeline.engine.tfx.compile import compile_target
        from slipway.pipeline.engine.tfx.resolver_lookup import with_found
        from slipway.pipeline.wiring.beam_options import run_in_process_by_default

        # Imported once here; otherwise every node would spend 0.8 s on importing the launcher.
        importlib.import_module("slipway.pipeline.engine.tfx.launch")
        cache_beam_lookups()
        bind_to_loopback()
        run_in_process_by_default()
        # A workload's graph is kept for later runs, and its records hold all runs of it.
        runs = order.target.output / "runs" if isinstance(order.target, (ModuleRun, IrRun)) else None
        compiled = with_found(compile_target(order), runs=runs)
        if compiled.graph.store:
            store = importlib.import_module("ml_metadata").MetadataStore
            serialize_store_calls(store, compiled.graph.store)
        return compiled

    def _import_ahead(self, module: str) -> None:
        try:
            with large_imports(keep=True):
                importlib.import_module(module)
        except Exception:  # the node will fail at the same import and report the error
            traceback.print_exc()

    def _refuse(self, error: BaseException) -> None:
        traceback.print_exc()
        cause = describe_exception(error, root=Path.cwd())
        is_ours = isinstance(error, SlipwayError)
        self._tell(messages.Refused(is_ours, cause["message"], cause["hint"], cause["where"]))

    def _ask_store(self, request: messages.StoreRequest) -> None:
        try:
            answer = self.from_store(request)
        except Exception as error:  # an error of the store: a full disk, a damaged file
            self._refuse(error)
            return
        self._tell(answer)

    def from_store(self, request: messages.StoreRequest) -> messages.Answer:
        """Carry out a request to the metadata store and return the answer."""
        from slipway.pipeline.engine.tfx import launch, store_upkeep

        match request:
            case messages.Settle(runs):
                store_upkeep.settle(self._compiled, runs=runs)
                return messages.Settled()
            case messages.Reuse(sources):
                return messages.Reused(launch.reuse(self._compiled, sources))
            case messages.FindPublished(run_ids):
                return messages.Published(launch.published(self._compiled, run_ids))

    def _start(self, start: Start) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        node = self.node_process(start)
        server = os.getpid()
        ours, theirs = socket.socketpair()
        # Imported modules are never garbage: a node's garbage collector need not traverse them.
        gc.freeze()
        try:
            pid = os.fork()
        except OSError as error:
            ours.close()
            theirs.close()
            node.take_result()
            cause = Cause(message=f"its process could not be started: {error.strerror}", hint="", where="")
            self._tell(Exited(start.node, code=1, peak_bytes=0, result=failed(cause)))
            return
        if pid == 0:
            self._channel.close()
            ours.close()
            node.become(self._compiled, server=server, forks=theirs, unseeded=self._unseeded)
        theirs.close()
        self._forks.serve(ours, node=pid)
        # Parent and child both set the group, so that it exists before either continues.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, pid)
        self._nodes[pid] = node
        self._tell(Started(start.node, pid))

    def _signal(self, node_id: str, signum: int) -> None:
        ending = {pid: node for pid, (node, _) in self._ending.items()}
        for pid, node in (self._nodes | ending).items():
            if node.start.node == node_id:
                node.was_told_to_end = True
                signal_group(pid, signum)
                # A stopped process handles no signal except SIGKILL until it is continued.
                signal_group(pid, signal.SIGCONT)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    break
                code, peak_bytes = os.waitstatus_to_exitcode(status), usage.ru_maxrss * _RSS_UNIT_BYTES
                if self._forks.owns(pid):
                    self._forks.ended(pid, code)
                self._forks.scripts.ended(pid, code)
                node = self._nodes.pop(pid, None)
                if node is None:
                    continue  # an orphan, or a module's process
                self._ending[pid] = (node, Exited(node.start.node, code, peak_bytes, node.take_result()))
                if not node.was_told_to_end:
                    # Kill the processes that it left behind. A node that the engine signalled to end may have
                    # started a training that was signalled too and saves its state: the engine ends that.
                    signal_group(pid, signal.SIGKILL)
        if self._ending:
            self._end_orphans()
        for pid in [pid for pid in self._ending if not signal_group(pid, 0)]:
            _, exited = self._ending.pop(pid)
            self._tell(exited)

    def _end_orphans(self) -> None:
        """Kill processes that ended nodes have left in other groups, e.g. in sessions of their own."""
        for pid in children(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                if (
                    self._nodes.keys().isdisjoint((pid, os.getpgid(pid)))
                    and os.getpgid(pid) not in self._ending
                    and not self._forks.scripts.owns(pid, self._nodes)
                ):
                    os.kill(pid, signal.SIGKILL)

    def _tell(self, answer: messages.Answer) -> None:
        with contextlib.suppress(BrokenPipeError):  # the engine is gone: serve() notices and ends
            self._channel.send(answer)

    def _end(self, _signum: int = 0, _frame: FrameType | None = None) -> NoReturn:
        until = time.monotonic() + _END_LIMIT_S
        for group in (*self._nodes, *self._ending):
            signal_group(group, signal.SIGKILL)
        # This process inherits the children of those that die: repeat until there is none.
        while (left := list(children(os.getpid()))) and time.monotonic() < until:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
            time.sleep(0.005)
        os._exit(0)


def main(arguments: Sequence[str], server: type[ForkServer] = ForkServer) -> None:
    """Entry point: `python -m slipway.pipeline.engine.processes.fork_server FD PARENT_PID`."""
    endpoint, parent = map(int, arguments)
    # A user's module may parse them when it is imported, and TFX gives them to executors as extra flags.
    del sys.argv[1:]
    die_with_parent(signal.SIGTERM, parent=parent)
    channel = messages.Channel(socket.socket(fileno=endpoint))
    # Keras 3 throughout; TensorFlow Transform would otherwise choose Keras 2 for the whole process.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")
    share_gpus()
    server(channel).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
