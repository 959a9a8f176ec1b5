"""What TFX and Beam would listen on, and here do not: servers of gRPC, which ask nobody who they are."""

import functools
from types import SimpleNamespace
from typing import Any

_ALL_INTERFACES = ("[::]:", "0.0.0.0:")


def bind_to_loopback() -> None:
    """Has servers of gRPC made from now on, here and in forks, listen on loopback where they want all.

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
    """An address to bind: of loopback where it was of all interfaces."""
    for every in _ALL_INTERFACES:
        if address.startswith(every):
            return f"localhost:{address.removeprefix(every)}"
    return address


def watch_no_executions(launcher: Any) -> None:
    """Has TFX's launcher start no server beside an executor, to which none of TFX's executors talks.

    Args:
        launcher: the module `tfx.orchestration.portable.launcher`.
    """
    # Nor a port looked for, which means to listen on all interfaces for a moment.
    launcher.portpicker = SimpleNamespace(pick_unused_port=lambda: 0)
    launcher.execution_watcher = SimpleNamespace(ExecutionWatcher=_NoWatcher)


class _NoWatcher:
    address = ""

    def __init__(self, **_: Any) -> None:
        """Takes what TFX's own takes."""

    def start(self) -> None:
        """Starts nothing."""

    def stop(self) -> None:
        """There is nothing to stop."""
