"""Keeps TFX and Beam from listening on the network: their gRPC servers do not authenticate clients."""

import functools
from types import SimpleNamespace
from typing import Any

_ALL_INTERFACES = ("[::]:", "0.0.0.0:")


def bind_to_loopback() -> None:
    """Make gRPC servers created from now on, here and in forks, bind to loopback instead of all interfaces.

    For example, Beam's worker pool for Flink, Spark and Prism binds all interfaces although it announces
    `localhost`.
    """
    import grpc

    original = grpc.server
    if hasattr(original, "original"):
        return

    @functools.wraps(original)
    def server(*args: Any, **options: Any) -> Any:
        made = original(*args, **options)
        add = made.add_insecure_port
        made.add_insecure_port = lambda address: add(on_loopback(address))
        return made

    server.original = original  # type: ignore[attr-defined]
    grpc.server = server


def on_loopback(address: str) -> str:
    """Return the address to bind: on loopback if `address` is on all interfaces."""
    for every in _ALL_INTERFACES:
        if address.startswith(every):
            return f"localhost:{address.removeprefix(every)}"
    return address


def watch_no_executions(launcher: Any) -> None:
    """Keep TFX's launcher from starting a gRPC server beside an executor: none of TFX's executors uses it.

    Args:
        launcher: the module `tfx.orchestration.portable.launcher`.
    """
    # Searching for a free port would also listen on all interfaces for a moment.
    launcher.portpicker = SimpleNamespace(pick_unused_port=lambda: 0)
    launcher.execution_watcher = SimpleNamespace(ExecutionWatcher=_NoWatcher)


class _NoWatcher:
    address = ""

    def __init__(self, **_: Any) -> None:
        """Accept the arguments of TFX's watcher."""

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""
