"""Publishers of the same model to one folder of an object store take turns; publishers of others do not wait.

<base>/.pushing/<digest of the model>   exists while a publisher publishes that model

A publisher that waited finds the version of the one before, so one model gets one version. The lock only
avoids a second, equal version; it does not protect the integrity of a version. After a time limit it is
therefore broken: its holder may be dead, on a machine that cannot be checked.
"""

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from slipway.components.errors import ComponentError
from slipway.components.pusher.claim_owner import is_gone, this_process
from slipway.components.pusher.stored_folder import EMPTY_CRC32C, PROCESS, Stored, StoredFolder, TakenError

WAIT_S = 120.0
"""How long to wait for a publisher of the same model whose process cannot be checked from here."""
LOOK_S = 0.5
"""How often to check whether the other publisher is done."""

LOCKS = ".pushing"
"""The folder of the locks; what a dead process left in it is removed by a later push."""

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def model_locked(folder: StoredFolder, digest: str, *, dead_after: timedelta) -> Iterator[None]:
    """Hold the lock of a model.

    Args:
        folder: the base.
        digest: of the model, see `Manifest.model_digest`.
        dead_after: the holder of an older lock is considered dead.

    Raises:
        ComponentError: the bucket cannot be used.
    """
    name = f"{LOCKS}/{digest}"
    _take(folder, name, dead_after)
    try:
        yield
    finally:
        # If the lock cannot be removed now, the model's next publisher breaks it.
        with contextlib.suppress(ComponentError):
            held = folder.find(name)
            if held is not None and folder.is_own(held, EMPTY_CRC32C):
                folder.delete(held)


def remove_dead_locks(folder: StoredFolder, seen: Mapping[str, Stored], *, dead_after: timedelta) -> None:
    """Remove the locks of dead holders from the objects of a base."""
    for name, held in seen.items():
        if name.startswith(f"{LOCKS}/") and _is_dead(held, dead_after):
            folder.delete(held)


def _take(folder: StoredFolder, name: str, dead_after: timedelta) -> None:
    until = time.monotonic() + WAIT_S
    told = False
    other = folder.find(name)
    while True:
        if other is None or _is_dead(other, dead_after) or time.monotonic() > until:
            # If several publishers find the lock free or its holder dead, the store lets one of them succeed.
            with contextlib.suppress(TakenError):
                labels = {PROCESS: this_process()}
                folder.create(name, b"", crc32c=EMPTY_CRC32C, labels=labels, over=other)
                return
        else:
            if not told:
                _log.info("Waiting for another publisher of the same model to %s.", folder.address)
            told = True
            time.sleep(LOOK_S)
        other = folder.find(name)


def _is_dead(held: Stored, dead_after: timedelta) -> bool:
    return is_gone(held.labels.get(PROCESS, "")) or datetime.now(UTC) - held.written > dead_after
