"""Checks that this machine has Docker, which container components and InfraValidator need."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.graph import Node

_SOCKET = "unix:///var/run/docker.sock"
_CONDITION = "condition"


def check_docker(due: Iterable[Node], environment: Mapping[str, str]) -> None:
    """Reject a run whose nodes start containers if there is no Docker, instead of letting them fail late.

    Args:
        due: the nodes that are to run. Conditional nodes are not checked: they may never start.
        environment: may name another Docker daemon with DOCKER_HOST.

    Raises:
        UsageError: there is no Docker; names the nodes.
    """
    names = [node.id for node in due if node.by_docker and not _has_condition(node)]
    address = environment.get("DOCKER_HOST") or _SOCKET  # Docker treats an empty value as unset
    if names and address.startswith("unix://") and not _is_socket(address.removeprefix("unix://")):
        raise UsageError(
            f"{', '.join(names)} would start a container, and there is no Docker at {address}.",
            hint=f"install or start Docker, or leave {names[0]} out, e.g. by --to with a node before it",
        )


def _is_socket(path: str) -> bool:
    try:
        return Path(path).is_socket()
    except OSError:  # in a folder that this user may not enter
        return False


def _has_condition(node: Node) -> bool:
    return any(key.partition(".")[0] == _CONDITION for key in node.params)
