"""How many nodes run at once if nobody says so."""

import os

from slipway.components.available_memory import available_memory_bytes


def default_jobs(*, node_bytes: int = 2 * 2**30) -> int:
    """Return the number of nodes to run at once, limited by cores and available memory.

    Args:
        node_bytes: the memory that a node is assumed to need; the taxi workload's largest holds 1.3 GiB.
    """
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, available_memory_bytes() // node_bytes))
