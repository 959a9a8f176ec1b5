"""A forked process that becomes a node: runs it, leaves its result, and never returns."""

import json
import os
import socket
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from slipway.components import python_process
from slipway.components.failure_files import LEFT_VARIABLE
from slipway.components.kept_state import PREEMPTED_EXIT_CODE, STATE_VARIABLE
from slipway.components.progress import PROGRESS_VARIABLE, report
from slipway.components.pusher.provenance import RUN_VARIABLE
from slipway.pipeline.engine.failure import PREEMPTED, Failed, describe_exception, failed
from slipway.pipeline.engine.launcher import Start
from slipway.pipeline.engine.processes.os_processes import join_group
from slipway.pipeline.engine.processes.random_draws import draw_anew
from slipway.pipeline.engine.tfx.beam_stages import report_stages
from slipway.pipeline.runs.record import NodeOutputs
from slipway.pipeline.runs.result_files import kept_files


@dataclass
class NodeProcess:
    """A node's process as the fork server sees it.

    Attributes:
        result: descriptor of the memory file that holds the result, so that a full disk cannot prevent the
            report.
        was_told_to_end: whether the engine has sent it a signal.
    """

    start: Start
    result: int = field(default_factory=lambda: os.memfd_create("node-result"))
    was_told_to_end: bool = False

    def take_result(self) -> NodeOutputs | Failed | None:
        """Return the result that the process left; None if it died before. Can be called once."""
        with os.fdopen(self.result, "rb") as stream:
            stream.seek(0)
            try:
                told: NodeOutputs | Failed = json.loads(stream.read())
            except ValueError:  # nothing was written, or only a part
                return None
        return told

    def become(self, compiled: Any, *, server: int, forks: socket.socket, unseeded: bytes) -> NoReturn:
        """Run the node in this process, which was forked for it.

        Args:
            compiled: the pipeline, a `slipway.pipeline.engine.tfx.compile.Compiled`.
            server: the fork server's process id.
            forks: the connection on which modules in further processes can be requested.
            unseeded: the `drawing_state` from before the user's code was imported.
        """
        code = 1
        try:
            # All its descendants stay its own, so that the fork server can tell which node they belong to.
            join_group(0, parent=server)
            python_process.fork_channel = forks
            draw_anew(unless_left=unseeded)
            result = self._run(compiled)
            os.write(self.result, json.dumps(result).encode())
            code = 0 if result["state"] != "failed" else 1
        except BaseException:  # nothing may return into the server's loop
            traceback.print_exc()
        finally:
            python_process.end_at_once(code)

    def _run(self, compiled: Any) -> NodeOutputs | Failed:
        try:
            _redirect_output(Path(self.start.log))
            os.environ[PROGRESS_VARIABLE] = self.start.progress
            os.environ[LEFT_VARIABLE] = self.start.left
            os.environ[STATE_VARIABLE] = self.start.state
            os.environ[RUN_VARIABLE] = compiled.run_id

            from absl import logging  # type: ignore[import-untyped]

            logging.set_verbosity(logging.INFO)
            report_stages(report)
            return self.launch(compiled)
        except BaseException as error:  # a component may raise anything
            cause = describe_exception(error, root=Path.cwd())
            _print_traceback()
            if isinstance(error, SystemExit) and error.code == PREEMPTED_EXIT_CODE:
                return {**failed(PREEMPTED), "is_preempted": True}
            return failed(cause)

    def launch(self, compiled: Any) -> NodeOutputs | Failed:
        """Run the node with `slipway.pipeline.engine.tfx.launch.launch`, and add the files of its outputs."""
        from slipway.pipeline.engine.tfx.launch import launch

        result = launch(compiled, self.start.node, attempt=self.start.attempt)
        # A resolver or an importer has not made its outputs, and there may be many.
        if result["state"] == "complete" and compiled.executor_spec(self.start.node) is not None:
            result["files"] = kept_files(result["outputs"])
        return result


def _print_traceback() -> None:
    try:
        traceback.print_exc()
    except (OSError, ValueError):
        return  # the log's disk is full, or closed; the cause is still reported through the memory file


def _redirect_output(log: Path) -> None:
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(target)
    os.close(nothing)
