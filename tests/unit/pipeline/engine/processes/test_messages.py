"""What the engine and its fork server tell each other arrives as it was told."""

import json
from pathlib import Path

import pytest

from slipway.pipeline.engine.launcher import Exited, Start, Started
from slipway.pipeline.engine.processes.messages import (
    Compile,
    Compiled,
    FindPublished,
    Published,
    Refused,
    Reuse,
    Reused,
    Settle,
    Settled,
    Signal,
    StartAhead,
    from_json,
    to_json,
)
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.run_target import ModuleRun, Order
from slipway.pipeline.runs.typed_json import DocumentError

OUTPUTS = {"model": [{"uri": "m/1", "type": "Model", "properties": {"auc": 0.5, "of": "x"}}]}
MADE = {"state": "complete", "execution_id": 7, "outputs": OUTPUTS, "files": {"f": (1, 2, "x")}}
FAILED = {"state": "failed", "message": "no", "hint": "", "where": "", "verdict": {"passed": False}}


@pytest.mark.parametrize(
    "message",
    [
        Compile(Order(target=ModuleRun(pipeline="m:p"), run_id="1", folder=Path("/runs/1"))),
        Compiled(Graph("toy", (Node("A", "A", ()), Node("B", "B", ("A",), retries=2, timeout_s=5.0)))),
        Settle("/runs"),
        Settled(),
        Reuse({"A": {"run_id": "1", "execution_id": None, "outputs": OUTPUTS}}),
        Reused({"A": MADE}),
        FindPublished(["1", "1.1"]),
        Published({"A": {"state": "complete", "execution_id": None, "outputs": {}}}),
        Refused(is_ours=True, message="no", hint="do", where="pipeline.py:3"),
        Start("A", 1, log="a.log", progress="p", left="l", state="s"),
        Started("A", 12),
        StartAhead("script.py", {"COLOUR": "green"}),
        Signal("A", 15),
        Exited("A", 0, 5, MADE),
        Exited("A", 1, 5, FAILED),
        Exited("A", -9, 0, None),
    ],
)
def test_message_arrives_as_it_was_sent(message):
    assert from_json(json.loads(json.dumps(to_json(message)))) == message


def test_half_a_message_is_none():
    with pytest.raises(DocumentError, match="pid is missing"):
        from_json({"is": "Started", "node": "A"})
