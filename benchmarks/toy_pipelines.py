"""Pipelines whose nodes do nothing, to measure the cost of running nodes."""

import os
import time
from pathlib import Path

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.orchestration.metadata import sqlite_metadata_connection_config
from tfx.orchestration.pipeline import Pipeline
from tfx.types.standard_artifacts import String

CHAIN_NODES = 10
SLEEPERS = 8
SLEEP_S = 5.0


@component
def First(value: OutputArtifact[String]) -> None:  # noqa: D103, N802
    Path(value.uri).touch()


@component
def Next(before: InputArtifact[String], value: OutputArtifact[String]) -> None:  # noqa: ARG001, D103, N802
    Path(value.uri).touch()


@component
def Sleeper(seconds: Parameter[float], value: OutputArtifact[String]) -> None:  # noqa: D103, N802
    time.sleep(seconds)
    Path(value.uri).touch()


def _pipeline(name: str, nodes: list) -> Pipeline:
    root = Path(os.environ["BENCH_ROOT"])
    return Pipeline(
        pipeline_name=name,
        pipeline_root=str(root / name),
        components=nodes,
        metadata_connection_config=sqlite_metadata_connection_config(str(root / f"{name}.db")),
        enable_cache=False,
    )


def chain() -> Pipeline:
    """Return a pipeline of ten nodes, each of which waits for the previous one."""
    nodes = [First().with_id("N0")]
    for number in range(1, CHAIN_NODES):
        nodes.append(Next(before=nodes[-1].outputs["value"]).with_id(f"N{number}"))
    return _pipeline("chain", nodes)


def sleepers() -> Pipeline:
    """Return a pipeline of eight independent nodes that sleep."""
    return _pipeline("sleepers", [Sleeper(seconds=SLEEP_S).with_id(f"S{n}") for n in range(SLEEPERS)])
