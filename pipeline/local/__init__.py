"""The local engine: plans a pipeline, runs each node in its own process, remembers what it did."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.local.embedding import RunFailedError, RunResult, run
    from pipeline.local.warm import Warm

__all__ = ["RunFailedError", "RunResult", "Warm", "run"]


def __getattr__(name: str) -> Any:
    """What is public, imported when it is asked for: a command that only lists runs needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "Warm":
        from pipeline.local.warm import Warm

        return Warm
    from pipeline.local import embedding

    return getattr(embedding, name)
