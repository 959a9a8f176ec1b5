"""Checks that this machine has Docker, which container components and InfraValidator need."""

import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.graph import Node

_SOCKET = "unix:///var/run/docker.sock"
_ANSWER_S = 10.0


def check_docker(due: Iterable[Node], environment: Mapping[str, str]) -> None:
    """Reject a run whose nodes start containers if no Docker answers, instead of letting them fail late.

    Args:
        due: the nodes that are to run. Conditional nodes are not checked: they may never start.
        environment: may name another Docker daemon with DOCKER_HOST.

    Raises:
        UsageError: there is no Docker, or it does not answer; names the nodes.
    """
    names = [node.id for node in due if node.by_docker and not node.has_condition]
    address = environment.get("DOCKER_HOST") or _SOCKET  # Docker treats an empty value as unset
    if not names or not address.startswith("unix://"):
        return
    path = address.removeprefix("unix://")
    problem = _problem(path) if _is_socket(path) else "there is no Docker"
    if problem:
        raise UsageError(
            f"{', '.join(names)} would start a container, and {problem} at {address}.",
            hint=f"install or start Docker, or leave {names[0]} out, e.g. by --to with a node before it",
        )


def _is_socket(path: str) -> bool:
    try:
        return Path(path).is_socket()
    except OSError:  # in a folder that this user may not enter
        return False


def _problem(path: str) -> str:
    """Return, as words, why the Docker behind a socket cannot be used; empty if it answers."""
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(_ANSWER_S)
            asking.connect(path)
            asking.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return "" if asking.recv(1) else "Docker gives no answer"
    except TimeoutError:
        return f"Docker does not answer within {_ANSWER_S:g} s"
    except PermissionError:
        return "you may not use the Docker"
    except OSError as error:  # as of a socket that a daemon left which has ended
        return f"no Docker answers ({error.strerror or error})"
