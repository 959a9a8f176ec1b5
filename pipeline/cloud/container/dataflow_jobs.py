"""Ends the Dataflow jobs of a task with it: the service would go on with them, which costs money."""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from slipway.components.beam_args import read_options
from slipway.pipeline.terminal.printable import say

_ENDED_BY_SIGTERM = 128 + signal.SIGTERM


@contextmanager
def ended_with_the_task(beam_args: Sequence[str]) -> Iterator[None]:
    """Cancel the jobs that the block submits if it ends before them: by SIGTERM, which ends it, or an error.

    Only the main thread may call it. Without Dataflow among the options it does nothing.

    Args:
        beam_args: Beam's options, as on a command line.

    Raises:
        SystemExit: this process received SIGTERM.
    """
    if "dataflow" not in read_options(beam_args).get("runner", "").lower():
        yield
        return
    from apache_beam.runners.dataflow.dataflow_runner import DataflowPipelineResult

    submitted: list[Any] = []
    begin = DataflowPipelineResult.__init__

    def begin_noted(result: Any, *given: Any, **named: Any) -> None:
        begin(result, *given, **named)
        submitted.append(result)

    def leave(*_: object) -> None:
        sys.exit(_ENDED_BY_SIGTERM)

    DataflowPipelineResult.__init__ = begin_noted
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    except BaseException:
        for result in submitted:
            if not result.is_in_terminal_state():
                _cancel(result)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
        DataflowPipelineResult.__init__ = begin


def _cancel(result: Any) -> None:
    say(f"Cancels the Dataflow job {result.job_id()}.")
    try:
        result.cancel()
    except Exception as error:  # whatever the client raises; the block's own error goes on
        say(
            f"error: the Dataflow job {result.job_id()} may still run: {type(error).__name__}: {error}",
            "hint: cancel it on Dataflow's page",
        )
