"""Keeps TFX and Beam from listening on the network: their gRPC servers authenticate nobody."""

import functools
from types import SimpleNamespace
from typing import Any

_ALL_INTERFACES = ("[::]:", "0.0.0.0:")


def bind_to_loopback() -> None:
    """Makes gRPC servers created from now on, here and in forks, bind to loopback instead of all interfaces.

    Beam's pool of workers for Flink, Spark and Prism is one: it binds all interfaces and tells `localhost`.
    """
    import grpc  # type: ignore[import-untyped]

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
    """An address to bind: on loopback if it was on all interfaces."""
    for every in _ALL_INTERFACES:
        if address.startswith(every):
            return f"localhost:{address.removeprefix(every)}"
    return address


def watch_no_executions(launcher: Any) -> None:
    """Keeps TFX's launcher from starting a server beside an executor: none of TFX's executors uses it.

    Args:
        launcher: the module `tfx.orchestration.portable.launcher`.
    """
    # Nor is a port searched for, which would listen on all interfaces for a moment.
    launcher.portpicker = SimpleNamespace(pick_unused_port=lambda: 0)
    launcher.execution_watcher = SimpleNamespace(ExecutionWatcher=_NoWatcher)


class _NoWatcher:
    address = ""

    def __init__(self, **_: Any) -> None:
        """Takes the arguments of TFX's own."""

    def start(self) -> None:
        """Starts nothing."""

    def stop(self) -> None:
        """Does nothing: there is nothing to stop."""
