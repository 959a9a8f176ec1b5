"""What the engine and its fork server tell each other arrives as it was told, split or joined on its way."""

import socket
from pathlib import Path

import pytest

from slipway.pipeline.engine.launcher import Exited, Start, Started
from slipway.pipeline.engine.processes.messages import (
    Channel,
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
)
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.run_target import ModuleRun, Order
from slipway.pipeline.runs.typed_json import DocumentError

OUTPUTS = {"model": [{"uri": "m/1", "type": "Model", "properties": {"auc": 0.5, "of": "x"}}]}
MADE = {"state": "complete", "execution_id": 7, "outputs": OUTPUTS, "files": {"f": (1, 2, "x")}}
FAILED = {"state": "failed", "message": "no", "hint": "", "where": "", "verdict": {"passed": False}}


@pytest.fixture
def ends():
    """A channel and the bare socket at its other end."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    yield channel, theirs
    channel.close()
    theirs.close()


def line(pid: int) -> bytes:
    """A message as it stands on the line."""
    return b'{"is": "Started", "node": "A", "pid": %d}\n' % pid


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
    ours, theirs = map(Channel, socket.socketpair())
    ours.send(message)
    assert list(theirs.receive()) == [message]
    ours.close()
    theirs.close()


def test_a_message_that_lacks_a_part_is_refused(ends):
    channel, peer = ends
    peer.sendall(b'{"is": "Started", "node": "A"}\n')
    with pytest.raises(DocumentError, match="pid is missing"):
        list(channel.receive())


def test_a_message_in_pieces_is_given_when_it_is_whole(ends):
    channel, peer = ends
    peer.sendall(line(1)[:8])
    assert list(channel.receive()) == []
    peer.sendall(line(1)[8:] + line(2)[:-1])
    assert list(channel.receive()) == [Started("A", 1)]
    peer.sendall(b"\n")
    assert list(channel.receive()) == [Started("A", 2)]


def test_messages_that_come_together_are_given_one_by_one(ends):
    channel, peer = ends
    peer.sendall(line(1) + line(2) + line(3))
    assert list(channel.receive()) == [Started("A", 1), Started("A", 2), Started("A", 3)]
    assert not channel.closed


def test_a_message_larger_than_one_read_is_put_together(ends):
    channel, peer = ends
    peer.sendall(b'{"is": "Settle", "runs": "' + b"x" * 100_000 + b'"}\n')
    messages = []
    while not messages:
        messages += channel.receive()
    assert messages == [Settle("x" * 100_000)]


def test_a_closed_peer_ends_the_stream_and_drops_the_half_message(ends):
    channel, peer = ends
    peer.sendall(line(1) + b'{"half')
    peer.close()
    assert list(channel.receive()) == [Started("A", 1)]
    assert not channel.closed
    assert list(channel.receive()) == []
    assert channel.closed


def test_sending_to_a_closed_peer_is_a_broken_pipe(ends):
    channel, peer = ends
    peer.close()
    with pytest.raises(BrokenPipeError):
        channel.send(Settled())


def test_closing_twice_is_harmless(ends):
    channel, _ = ends
    channel.close()
    channel.close()
    assert channel.closed
