"""The record of a run that several processes write at the same time, each its own node."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import RunRecord


class SharedHistory(History):
    """A `History` whose `save` writes one node, and keeps what other processes have written meanwhile.

    Args:
        node_id: that node; empty if this process only reads.
    """

    def __init__(self, output: Path, node_id: str = "") -> None:
        super().__init__(output)
        self._node_id = node_id

    @contextmanager
    def alone(self, run_id: str) -> Iterator[None]:
        """Prevent other processes from writing this run's record."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.folder(run_id) / ".lock", flags, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def save(self, record: RunRecord) -> None:
        """Write the node into `run.json`; the run continues."""
        own = record.node(self._node_id)
        with self.alone(record.run_id):
            now = self.find(record.run_id)
            now.nodes = [own if node.id == own.id else node for node in now.nodes]
            now.state, now.exit_code, now.wall_s = "running", None, record.wall_s
            super().save(now)
