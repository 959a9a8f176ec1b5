"""Hands a finished run over to trackers: adds an entry to the spool and starts a process that sends it.

Nothing slow is imported here, and nothing is waited for.
"""

import threading
from dataclasses import fields
from pathlib import Path

from slipway.components.python_process import start_in_background
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.run_target import KeptTrack
from slipway.pipeline.tracking import spool
from slipway.pipeline.tracking.spool import Waiting

TRACKERS = tuple(each.name for each in fields(KeptTrack) if each.name != "experiment")
"""The keys of the workload file's `track` that hold a tracker's address, as a run's record keeps them."""


def leave(record: RunRecord, *, without_page: bool = False) -> bool:
    """Add a run to the spool for its workload's trackers; return False if the workload names none.

    Args:
        without_page: as in `Waiting`.

    Raises:
        OSError: the output folder cannot be written.
    """
    names = named(record)
    if names:
        why = dict.fromkeys(names, "")
        spool.put(record.output, Waiting(record.run_id, record.resumed, why, without_page=without_page))
    return bool(names)


def start(output: Path) -> None:
    """Start a process that sends all waiting runs, without waiting for it.

    Raises:
        OSError: no process can be started.
    """
    process = start_in_background("slipway.pipeline.tracking.sender", str(output))
    # In a process that lives on, such as a notebook's, the child must not remain as a zombie.
    threading.Thread(target=process.wait, daemon=True).start()


def named(record: RunRecord) -> dict[str, str]:
    """Return the addresses of the trackers that the run's workload names, by name."""
    settings = record.target.settings
    track = settings.track if settings is not None else KeptTrack()
    named = {name: getattr(track, name) for name in TRACKERS}
    return {name: address for name, address in named.items() if address}
