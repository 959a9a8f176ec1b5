"""The local engine: plans a pipeline, runs each node in its own process, remembers what it did."""

from pipeline.local.embedding import RunFailedError, RunResult, run
from pipeline.local.warm import Warm

__all__ = ["RunFailedError", "RunResult", "Warm", "run"]
