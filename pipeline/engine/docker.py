"""Whether this machine has a Docker, which container components and InfraValidator ask for."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.graph import Node

_SOCKET = "unix:///var/run/docker.sock"
_CONDITION = "condition"


def check_docker(due: Iterable[Node], environment: Mapping[str, str]) -> None:
    """Rejects a run whose nodes start containers where there is no Docker: they would fail late.

    Args:
        due: the nodes that are to run; one under a condition may never start, and is left to the run.
        environment: names another Docker by DOCKER_HOST.

    Raises:
        UsageError: names the nodes.
    """
    names = [node.id for node in due if node.by_docker and not _has_condition(node)]
    address = environment.get("DOCKER_HOST") or _SOCKET  # empty: as Docker takes it
    if names and address.startswith("unix://") and not _is_socket(address.removeprefix("unix://")):
        raise UsageError(
            f"{', '.join(names)} would start a container, and there is no Docker at {address}.",
            hint=f"install or start Docker, or leave {names[0]} out, e.g. by --to with a node before it",
        )


def _is_socket(path: str) -> bool:
    try:
        return Path(path).is_socket()
    except OSError:  # in a folder that may not be looked into, e.g. another user's
        return False


def _has_condition(node: Node) -> bool:
    return any(key.partition(".")[0] == _CONDITION for key in node.params)
