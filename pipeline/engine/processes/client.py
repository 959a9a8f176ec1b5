"""The engine's client of its fork server."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

from slipway.components.beam_args import JOBS_VARIABLE
from slipway.components.import_path import import_path
from slipway.components.isolated_script import IsolatedScript
from slipway.components.project import PROJECT_ROOT
from slipway.components.python_process import ForkedProcess
from slipway.pipeline.engine import attempt
from slipway.pipeline.engine.launcher import Exited, LauncherLostError, Start, Started
from slipway.pipeline.engine.processes import messages
from slipway.pipeline.engine.processes.os_processes import RUN_VARIABLE, end_leftovers, is_stopped
from slipway.pipeline.engine.processes.warm import WarmProcess
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.record import NodeOutputs, Result
from slipway.pipeline.runs.run_target import Order
from slipway.pipeline.wiring.keras_choice import KERAS_VARIABLES, keras_variables

# Importing TFX takes 6 s on an idle machine with 2 cores; after a hundred times that, the server is stuck.
_ANSWER_LIMIT_S = 600.0
_TICK_S = 0.2
# The server ends its nodes and itself within moments, unless it hangs in third-party code.
_END_LIMIT_S = 5.0
_Wanted = TypeVar("_Wanted")


class RefusedError(UsageError):
    """The pipeline's own code raised while it was built; the server's log holds the traceback."""


def _start(
    module: str, descriptors: Sequence[int], environment: Mapping[str, str], *, folder: Path | None
) -> subprocess.Popen[bytes]:
    output, errors, line = descriptors
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(line), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        env=environment,
        cwd=folder,
        pass_fds=[line],
        # A terminal's Ctrl-C reaches only the engine, which ends the nodes in order.
        start_new_session=True,
    )


class ForkServerClient:
    """The fork server as the engine sees it: the `Launcher` of runs on this machine.

    Args:
        run_folder: marks the server's processes, and receives the server's log.
        temporary: the folder for temporary files of its processes.
        warm: the process to fork the server from; None starts it in a new process.
        folder: the folder to import our packages from; also the server's working directory if `environment`
            is given.
        environment: the server's environment variables, beside those that are always set; None: this
            process's.
        is_ours: whether the server runs a workload; a user's own pipeline uses the Keras that `environment`
            chooses.
        jobs: how many nodes the user lets run at once; None: nothing was said.
    """

    def __init__(
        self,
        run_folder: Path,
        *,
        temporary: Path,
        warm: WarmProcess | None = None,
        module: str = "slipway.pipeline.engine.processes.fork_server",
        folder: Path = PROJECT_ROOT,
        environment: Mapping[str, str] | None = None,
        is_ours: bool = True,
        jobs: int | None = None,
    ) -> None:
        self._run_folder = run_folder.resolve()
        ours, theirs = socket.socketpair()
        self._channel = messages.Channel(ours)
        self._log = run_folder / "logs" / "engine.log"
        self._has_nodes = False
        self._stopped_since: float | None = None
        given = dict(os.environ if environment is None else environment)
        keras = keras_variables(given, is_ours=is_ours)
        if keras != KERAS_VARIABLES:
            warm = None  # the warm process has imported the default Keras
        variables = {
            **given,
            RUN_VARIABLE: str(self._run_folder),
            JOBS_VARIABLE: str(jobs or 0),
            "PYTHONPATH": import_path(folder, inherited=given.get("PYTHONPATH", "")),
            "TMPDIR": str(temporary),
            # TFX uses pip to unpack the modules beside a `module_file`, which needs no network.
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **keras,
            "TF_CPP_MIN_LOG_LEVEL": given.get("TF_CPP_MIN_LOG_LEVEL", "1"),
        }
        with self._log.open("ab") as log, theirs:
            descriptors = [log.fileno(), log.fileno(), theirs.fileno()]
            try:
                self._process = self._begin(
                    module, descriptors, variables, warm, folder=None if environment is None else folder
                )
            except BaseException:
                self._channel.close()
                raise

    def _begin(
        self,
        module: str,
        descriptors: Sequence[int],
        variables: Mapping[str, str],
        warm: WarmProcess | None,
        *,
        folder: Path | None,
    ) -> ForkedProcess | subprocess.Popen[bytes]:
        if warm is not None:
            try:
                return warm.start(module, environment=variables, descriptors=descriptors)
            except PipelineError:
                if not warm.is_spare:
                    raise
        return _start(module, descriptors, variables, folder=folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, start: Start) -> None:
        """As `Launcher.start`."""
        self._has_nodes = True
        self._send(start)

    def signal(self, node_id: str, signum: int) -> None:
        """As `Launcher.signal`."""
        self._send(messages.Signal(node_id, signum))

    def receive(self, timeout_s: float) -> list[Started | Exited]:
        """As `Launcher.receive`; a server that was stopped for too long counts as gone."""
        return [each for each in self._receive(timeout_s) if isinstance(each, (Started, Exited))]

    def _send(self, request: messages.Request) -> None:
        try:
            self._channel.send(request)
        except BrokenPipeError as error:
            raise self._gone() from error

    def _receive(self, timeout_s: float) -> list[messages.Answer]:
        self._refuse_stopped()
        readable, _, _ = select.select([self._channel], [], [], timeout_s)
        answers = list(self._channel.receive()) if readable else []
        if self._channel.closed:
            raise self._gone()
        return answers

    def _refuse_stopped(self) -> None:
        """Raise if the server was stopped for too long: it sends nothing and cannot be made to end a node."""
        now = time.monotonic()
        if not is_stopped(self._process.pid):
            self._stopped_since = None
        elif self._stopped_since is None:
            self._stopped_since = now
        elif now - self._stopped_since > attempt.STOPPED_LIMIT_S:
            self.kill()
            raise LauncherLostError(
                "The process that starts the nodes was stopped (SIGSTOP) for "
                f"{attempt.STOPPED_LIMIT_S:g} s and not continued."
            )

    def start_ahead(self, script: IsolatedScript) -> None:
        """Start a script that a node will request, unless one waits already; it ends with the server.

        Raises:
            LauncherLostError: the server is gone.
        """
        self._send(messages.StartAhead(script.path, dict(script.variables)))

    def compile(self, order: Order, *, tick: Callable[[], None]) -> Graph:
        """Have the server build and compile the pipeline; see `begin_compiling` and `compiled`."""
        self.begin_compiling(order)
        return self.compiled(tick=tick)

    def begin_compiling(self, order: Order) -> None:
        """Have the server import TFX, build the pipeline and compile it, which takes seconds.

        Raises:
            LauncherLostError: the server is gone.
        """
        self._send(messages.Compile(order))

    def compiled(self, *, tick: Callable[[], None]) -> Graph:
        """Wait for the pipeline that the server compiles, and return its graph.

        Args:
            tick: called a few times a second while waiting.

        Raises:
            UsageError: there is no such pipeline, or it cannot be run here.
            RefusedError: the pipeline's own code raised; the message is from that code.
        """
        return self._wait_for(messages.Compiled, tick).graph

    def settle(self, runs: str, *, tick: Callable[[], None]) -> None:
        """Prepare the metadata store for the run; see `store_upkeep.settle`.

        Raises:
            UsageError: the store cannot be used with the files in the pipeline's folder.
            PipelineError: the store itself failed, e.g. because of a full disk.
        """
        self._of_store(messages.Settle(runs), messages.Settled, tick)

    def reuse(self, sources: Mapping[str, Result], *, tick: Callable[[], None]) -> dict[str, NodeOutputs]:
        """Register cached executions as this run's, and return their results by node id; see `launch.reuse`.

        Raises:
            UsageError, PipelineError: as `settle`.
        """
        return self._of_store(messages.Reuse(dict(sources)), messages.Reused, tick).results if sources else {}

    def published(self, run_ids: Sequence[str], *, tick: Callable[[], None]) -> dict[str, NodeOutputs]:
        """Return the results that nodes published under those run ids; see `launch.published`.

        Raises:
            UsageError, PipelineError: as `settle`.
        """
        return self._of_store(messages.FindPublished(list(run_ids)), messages.Published, tick).results

    def _of_store(
        self, request: messages.Request, wanted: type[_Wanted], tick: Callable[[], None]
    ) -> _Wanted:
        self._send(request)
        try:
            return self._wait_for(wanted, tick)
        except RefusedError as error:  # the machine is at fault, not the pipeline
            raise PipelineError(error.message, hint=error.hint) from error

    def _wait_for(self, wanted: type[_Wanted], tick: Callable[[], None]) -> _Wanted:
        until = time.monotonic() + _ANSWER_LIMIT_S
        while time.monotonic() < until:
            # Nothing else is in progress: nodes start only after these requests are answered.
            for answer in self._receive(_TICK_S):
                if isinstance(answer, messages.Refused):
                    where = f"{answer.where}: " if answer.where else ""
                    if answer.is_ours:
                        raise UsageError(f"{where}{answer.message}", hint=answer.hint)
                    hint = f"{answer.hint}; " if answer.hint else ""
                    raise RefusedError(f"{where}{answer.message}", hint=f"{hint}see {self._log}")
                if isinstance(answer, wanted):
                    return answer
            tick()
        raise PipelineError(
            f"The fork server gave no answer in {_ANSWER_LIMIT_S:.0f} s.", hint=f"see {self._log}"
        )

    def _gone(self) -> LauncherLostError:
        try:
            code = self._process.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            return LauncherLostError(
                "The process that starts the nodes closed its connection.", hint=f"see {self._log}"
            )
        except ConnectionError:  # only the warm process could tell how it ended
            return LauncherLostError(
                "The process that starts the nodes is gone, and so is the warm process that forked it.",
                hint=f"see {self._log}",
            )
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        if -code == signal.SIGKILL:
            how += ", by a person, or by the system for lack of memory"
        return LauncherLostError(f"The process that starts the nodes {how}.", hint=f"see {self._log}")

    def close(self) -> None:
        """End the server and all processes it started."""
        self._channel.close()
        # Before its first node the server has nothing to end in order, and may spend seconds in the C code of
        # an import, where it neither reads the connection nor handles signals.
        if self._has_nodes:
            with contextlib.suppress(subprocess.TimeoutExpired, ConnectionError):
                self._process.terminate()
                self._process.wait(_END_LIMIT_S)
        self.kill()

    def kill(self) -> None:
        """Kill the server and all processes it started, including those that outlive it."""
        # Only the warm process knows how a server that it forked has ended: stopped (SIGSTOP) it never tells,
        # and if it is gone, the kernel has killed what it forked.
        with contextlib.suppress(ConnectionError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait(_END_LIMIT_S)
        end_leftovers(self._run_folder)
