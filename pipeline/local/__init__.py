"""The local engine: plans a pipeline, runs each node in its own process, remembers what it did."""

from pipeline.local.embedding import RunFailedError, RunResult, run

__all__ = ["RunFailedError", "RunResult", "run"]
