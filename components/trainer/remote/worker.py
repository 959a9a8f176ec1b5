"""Entry point of each machine of a training job on other machines.

    python -m slipway.components.trainer.remote.worker gs://.../job.json

The training process itself works on local files. The worker copies the job file from beside the artifacts,
and the results back. It writes the outcome last: once it exists, all results are there. The exit code is that
of the training process (see slipway.components.trainer.train).
"""

import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.event_lines import emit
from slipway.components.saved_model.digest import SBOM
from slipway.components.trainer import train
from slipway.components.trainer.checkpoint_storage import Storage, storage
from slipway.components.trainer.devices.hosts import find_hosts
from slipway.components.trainer.devices.with_jax import leave
from slipway.components.trainer.job import HISTORY_FILE, RESULT_FILE, WEIGHTS_FILE, TrainingJob

OUTCOME_FILE = "outcome.json"
"""The last event of the training process, as it prints it."""
RESULTS = (WEIGHTS_FILE, HISTORY_FILE, RESULT_FILE, SBOM)


def main(arguments: list[str]) -> int:
    """Run the job at an address; return the exit code of the training.

    Args:
        arguments: the address of the job file, on disk or gs://.

    Raises:
        OSError: the job cannot be read, or the results cannot be written.
    """
    [address] = arguments
    folder, _, name = address.rpartition("/")
    files = storage(folder)
    job = TrainingJob.from_json(files.read(name).decode())
    is_first = _is_first()
    if is_first:
        files.remove(OUTCOME_FILE)  # of a worker that was preempted: this one may be killed before it tells
    outcome: dict[str, object] = {}

    def tell(event: str, **values: Any) -> None:
        outcome.update(event=event, **values)
        emit(event, **values)

    with tempfile.TemporaryDirectory(prefix="training-") as here:
        file = Path(here, name)
        file.write_text(replace(job, output_dir=here).to_json(), encoding="utf-8")
        code = train.main([str(file)], tell=tell)
        if is_first:  # every host has the same weights
            for result in RESULTS if code == 0 else ():
                _write(files, result, Path(here, result).read_bytes())
            _write(files, OUTCOME_FILE, json.dumps(outcome).encode())
    return code


def _is_first() -> bool:
    """Return True for the host that writes; for each one if they cannot tell, which the training has told."""
    try:
        return find_hosts(os.environ).index == 0
    except ComponentError:
        return True


def _write(files: Storage, name: str, content: bytes) -> None:
    files.write(name, lambda stream: stream.write(content))


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
