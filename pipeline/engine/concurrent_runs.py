"""State shared by concurrent runs of one process in one output folder, so that no node runs twice."""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from slipway.pipeline.engine.processes.os_processes import end_leftovers
from slipway.pipeline.engine.processes.temporary import remove_left
from slipway.pipeline.engine.signal_handlers import Interruptions, signals_handled_by
from slipway.pipeline.runs.lock import check_store, working
from slipway.pipeline.runs.record import RunRecord

Work = tuple[str, str]
"""A node of a run: its id, and the key of its fingerprint."""


@dataclass
class Beside:
    """The runs that are at work side by side, each in a thread.

    A run claims all nodes that it is going to run, and begins only if no other run has claimed one of them.
    Otherwise it waits, without claims of its own, until the other has done with them, and plans anew: it then
    finds their results in the cache.

    Attributes:
        signals: counts Ctrl-C and SIGTERM, which Python handles in the main thread, for all runs.
        begun: how many runs have begun here. The first must be alone until it has ended, because it closes
            what earlier runs left open.
        releases: how often claims were given up, and so results may have come into the cache.
    """

    signals: Interruptions = field(default_factory=Interruptions)
    begun: int = 0
    releases: int = 0
    _claims: dict[str, set[Work]] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def interrupt(self, *_: object) -> None:
        """Handle a signal: count it; the runs look at the count."""
        self.signals.count += 1

    def leave_if_interrupted(self) -> None:
        """Leave a run that has not begun its first node.

        Raises:
            KeyboardInterrupt: there was a signal.
        """
        if self.signals.count:
            raise KeyboardInterrupt

    def begin(self) -> None:
        """Count a run that begins."""
        with self._changed:
            self.begun += 1

    def claim(
        self, run_id: str, wanted: Collection[Work], *, releases: int, tick: Callable[[], None]
    ) -> bool:
        """Claim the nodes that a run is going to run.

        Args:
            releases: `Beside.releases` from before the run was planned.
            tick: called twice a second while waiting; may raise.

        Returns:
            True if they are the run's now. False if another had claimed one, and has done with all, or has
            given up claims while this run was planned: it has to plan anew.
        """
        with self._changed:
            if not self._is_claimed(wanted):
                if self.releases != releases:
                    return False
                self._claims[run_id] = set(wanted)
                return True
            while self._is_claimed(wanted):
                self._changed.wait(0.5)
                tick()
        return False

    def _is_claimed(self, wanted: Collection[Work]) -> bool:
        return any(not claimed.isdisjoint(wanted) for claimed in self._claims.values())

    def release(self, record: RunRecord) -> None:
        """Give up the claims of a run's nodes that are done, failed or left out."""
        left = {node.id for node in record.nodes if node.state in ("waiting", "running")}
        with self._changed:
            claimed = self._claims.get(record.run_id, set())
            if done := {work for work in claimed if work[0] not in left}:
                claimed -= done
                self.releases += 1
                self._changed.notify_all()

    def end(self, run_id: str) -> None:
        """Give up all claims of a run that has ended."""
        with self._changed:
            if self._claims.pop(run_id, None):
                self.releases += 1
                self._changed.notify_all()


@contextlib.contextmanager
def side_by_side(output: Path, workload: str, *, run_id: str) -> Iterator[Beside]:
    """Lock an output folder for several runs of a workload, each in a thread; meanwhile count signals.

    The runs are made by `execution.execute`; the first must have ended before the second begins.

    Args:
        run_id: what holds the lock, for the message to others.

    Raises:
        UsageError: the output folder is in use, or its metadata store is damaged.
    """
    beside = Beside()
    with at_work(output, workload, run_id=run_id), signals_handled_by(beside.interrupt):
        yield beside


@contextlib.contextmanager
def at_work(output: Path, workload: str, *, run_id: str) -> Iterator[None]:
    """Lock an output folder, and remove what killed runs left there."""
    with working(output, workload, run_id=run_id):
        end_leftovers(output / "runs")
        remove_left(output / "runs")
        check_store(output / "metadata.db")
        yield
