"""Reads what limits a component's processes from Beam's options, which it is given, and the environment."""

import os
from collections.abc import Sequence

JOBS_VARIABLE = "SLIPWAY_JOBS"
"""Set by the engine for each node: how many nodes the user lets run at once (`--jobs`); 0: not said."""


def read_options(args: Sequence[str]) -> dict[str, str]:
    """Return option values by name, given as `--NAME=VALUE` or `--NAME VALUE`; empty for a switch."""
    found: dict[str, str] = {}
    name = ""
    for arg in args:
        if arg.startswith("--"):
            name, _, value = arg.removeprefix("--").partition("=")
            found[name] = value
        elif name and not found[name]:
            found[name] = arg
    return found


def most_workers(args: Sequence[str]) -> int:
    """Return the maximum number of a node's processes; 0: one per core.

    It is `--direct_num_workers`, or else the engine's `--jobs` if these are fewer than the cores: who lets
    only so many nodes run at once has no room for more.
    """
    named = int(read_options(args).get("direct_num_workers") or 0)
    jobs = int(os.environ.get(JOBS_VARIABLE) or 0)
    return named or (jobs if jobs < len(os.sched_getaffinity(0)) else 0)
