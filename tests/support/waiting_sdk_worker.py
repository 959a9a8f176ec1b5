"""Stands for slipway.components.beam_sdk_worker where no Beam runner is."""

import time
from pathlib import Path


def work(control: str, worker_id: str) -> None:
    """Writes a worker's id where it would call the engine, and waits."""
    Path(control).write_text(worker_id)
    time.sleep(60)
