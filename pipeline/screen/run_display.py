"""Shows a run in progress: a table that redraws on a terminal, one line per change in a log."""

import os
import sys
import time
from collections.abc import Mapping
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from slipway.pipeline.runs.outcome import read_stops, read_verdict, read_verdicts
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.screen.display import RunDisplay
from slipway.pipeline.screen.wording import MARKS, node_line, summary
from slipway.pipeline.terminal.durations import seconds
from slipway.pipeline.terminal.printable import printable

# A log is never silent for longer, because CI systems end jobs without output.
_LOG_SILENCE_S = 25.0
_STYLES = {"running": "bold", "complete": "green", "cached": "dim", "failed": "bold red", "skipped": "dim"}


def choose_display(stream: TextIO) -> RunDisplay:
    """Return a live table if the stream is a terminal that can redraw, otherwise a line display.

    `CI=true`, `TERM=dumb` and `NO_COLOR` are honoured.
    """
    can_redraw = stream.isatty() and os.environ.get("TERM") != "dumb"
    return (
        TableDisplay(stream)
        if can_redraw and os.environ.get("CI", "false") != "true"
        else LineDisplay(stream)
    )


class LineDisplay(RunDisplay):
    """Prints one line per change, and a line now and then when nothing changes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last_said = time.monotonic()
        self._width = 0

    def begins(self, record: RunRecord) -> None:
        """Print which run this is."""
        self._say(_heading(record))

    def waiting(self, record: RunRecord, what: str) -> None:
        """Print what the run waits for, now and then."""
        if time.monotonic() - self._last_said > _LOG_SILENCE_S:
            self._say(f"  {what}")

    def planned(self, record: RunRecord, expected_s: Mapping[str, float]) -> None:
        """Print which nodes are cached."""
        self._width = max(len(node.id) for node in record.nodes)
        cached = [node.id for node in record.nodes if node.state == "cached"]
        if cached:
            self._say(f"= cached: {', '.join(cached)}")

    def changed(self, record: RunRecord, node: NodeRecord) -> None:
        """Print the node's change."""
        self._say(node_line(node, width=self._width))

    def tick(self, record: RunRecord, progress: Mapping[str, str]) -> None:
        """Print which nodes are running, after a long silence."""
        if time.monotonic() - self._last_said > _LOG_SILENCE_S:
            running = (node.id for node in record.nodes if node.state == "running")
            told = (
                f"{node_id} ({progress[node_id]})" if node_id in progress else node_id for node_id in running
            )
            self._say(f"  still running: {', '.join(told) or 'no task yet'}")

    def ends(self, record: RunRecord) -> None:
        """Print the summary."""
        for line in summary(
            record, stops=read_stops(record), verdict=read_verdict(record), passed=read_verdicts(record)
        ):
            self._say(line)

    def _say(self, line: str) -> None:
        self._last_said = time.monotonic()
        print(printable(line), file=self._stream, flush=True)


class TableDisplay(RunDisplay):
    """A table of all nodes, redrawn in place."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False)
        self._live: Live | None = None
        self._began = time.monotonic()
        self._node_began: dict[str, float] = {}
        self._expected_s: Mapping[str, float] = {}
        self._progress: Mapping[str, str] = {}

    def begins(self, record: RunRecord) -> None:
        """Open the table."""
        self._console.print(Text(printable(_heading(record))), soft_wrap=True)
        self._live = Live(Text(""), console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def waiting(self, record: RunRecord, what: str) -> None:
        """Show what the run waits for."""
        self._draw(Text(f"  {what}, {seconds(time.monotonic() - self._began)}", style="dim"))

    def planned(self, record: RunRecord, expected_s: Mapping[str, float]) -> None:
        """Show what will happen to each node."""
        self._expected_s = expected_s
        self._draw(self._table(record))

    def changed(self, record: RunRecord, node: NodeRecord) -> None:
        """Redraw the table."""
        if node.state == "running":
            self._node_began[node.id] = time.monotonic()
        self._draw(self._table(record))

    def tick(self, record: RunRecord, progress: Mapping[str, str]) -> None:
        """Redraw the table with the elapsed time."""
        self._progress = progress
        self._draw(self._table(record))

    def ends(self, record: RunRecord) -> None:
        """Leave the final table and the summary on the screen."""
        width = self.leave_table(record)
        for line in summary(
            record,
            stops=read_stops(record),
            verdict=read_verdict(record),
            passed=read_verdicts(record),
            width=width,
        ):
            self._console.print(Text(printable(line)), soft_wrap=True)

    def leave_table(self, record: RunRecord) -> int:
        """Leave the final table on the screen; return the screen's width in columns."""
        self.close()
        if record.nodes:
            self._console.print(self._table(record))
        return self._console.width

    def close(self) -> None:
        """Remove the live table from the screen and show the cursor again, however the run ended."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self, renderable: Table | Text) -> None:
        if self._live is not None:
            self._live.update(renderable, refresh=True)

    def _table(self, record: RunRecord) -> Table:
        table = Table(box=None, pad_edge=False, show_header=False, expand=True)
        # Only the note is shortened on a narrow terminal, and no column moves between frames.
        for width in (1, max(len(node.id) for node in record.nodes), len("complete")):
            table.add_column(width=width, no_wrap=True)
        table.add_column(width=len("10 min 10 s"), no_wrap=True, justify="right")
        table.add_column(overflow="ellipsis", no_wrap=True, ratio=1)
        for node in record.nodes:
            style = _STYLES.get(node.state, "")
            cells = (MARKS[node.state], node.id, node.state, self._time(node), self._note(node))
            # Text, not str: a bracket in a message must not be read as markup.
            table.add_row(*(Text(printable(cell), style=style) for cell in cells))
        return table

    def _time(self, node: NodeRecord) -> str:
        if node.state == "running":
            return seconds(time.monotonic() - self._node_began.get(node.id, time.monotonic()))
        return seconds(node.wall_s) if node.state in ("complete", "failed") else ""

    def _note(self, node: NodeRecord) -> str:
        if node.state == "running":
            expected = self._expected_s.get(node.id)
            estimate = f"of about {seconds(expected)}" if expected else "no estimate yet"
            return self._progress.get(node.id) or estimate
        if node.state == "failed" and node.error:
            return node.error["message"]
        return node.why


def stderr_display() -> RunDisplay:
    """Return the display for the command line: messages go to stderr, results to stdout."""
    return choose_display(sys.stderr)


def _heading(record: RunRecord) -> str:
    """Return a line that names the run, and the folder of a first run, which may not be the intended one."""
    line = f"{record.workload}: {'resumes' if record.resumed else 'run'} {record.run_id}"
    runs = record.folder.parent
    is_first = runs.is_dir() and [path.name for path in runs.iterdir()] == [record.run_id]
    return f"{line} (the first in {runs.parent})" if is_first and not record.resumed else line
