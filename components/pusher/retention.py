"""Which published versions are kept: the newest, and those that no push made."""

import logging

from slipway.components.pusher.version_store import version_store_at

_log = logging.getLogger(__name__)


def thin_out(base: str, *, keep: int) -> list[int]:
    """Remove the oldest versions until `keep` are left; never the newest, nor one that no push made.

    Args:
        base: the directory or address in an object store.
        keep: number of versions to keep, >= 1.
    """
    store = version_store_at(base)
    older = store.numbers()[: -max(keep, 1)]
    removed = [version for version in older if store.manifest(version) is not None]
    for version in removed:
        store.remove(version)
        _log.info("Removed version %d of %s: push.keep is %d.", version, base, keep)
    return removed
