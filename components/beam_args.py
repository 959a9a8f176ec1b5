"""Reads Beam's options from the arguments that a component passes on to it. Pure."""

from collections.abc import Sequence


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
    """Return the maximum number of a node's processes, `--direct_num_workers`; 0: one per core."""
    return int(read_options(args).get("direct_num_workers") or 0)
