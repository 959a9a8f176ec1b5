"""Channel: messages survive being split and joined; a peer that is gone is noticed."""

import socket

import pytest

from slipway.pipeline.engine.processes.channel import Channel


@pytest.fixture
def ends():
    """A channel and the bare socket at its other end."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    yield channel, theirs
    channel.close()
    theirs.close()


def test_a_message_arrives_as_it_was_sent():
    ours, theirs = map(Channel, socket.socketpair())
    ours.send({"op": "start", "text": "a\nb \u00e9", "nested": {"list": [1, None]}})
    assert list(theirs.receive()) == [{"op": "start", "text": "a\nb \u00e9", "nested": {"list": [1, None]}}]
    ours.close()
    theirs.close()


def test_a_message_in_pieces_is_given_when_it_is_whole(ends):
    channel, peer = ends
    peer.sendall(b'{"a":')
    assert list(channel.receive()) == []
    peer.sendall(b' 1}\n{"b": 2')
    assert list(channel.receive()) == [{"a": 1}]
    peer.sendall(b"}\n")
    assert list(channel.receive()) == [{"b": 2}]


def test_messages_that_come_together_are_given_one_by_one(ends):
    channel, peer = ends
    peer.sendall(b'{"a": 1}\n{"a": 2}\n{"a": 3}\n')
    assert [message["a"] for message in channel.receive()] == [1, 2, 3]
    assert not channel.closed


def test_a_message_larger_than_one_read_is_put_together(ends):
    channel, peer = ends
    peer.sendall(b'{"text": "' + b"x" * 100_000 + b'"}\n')
    messages = []
    while not messages:
        messages += channel.receive()
    assert len(messages[0]["text"]) == 100_000


def test_a_closed_peer_ends_the_stream_and_drops_the_half_message(ends):
    channel, peer = ends
    peer.sendall(b'{"a": 1}\n{"half')
    peer.close()
    assert list(channel.receive()) == [{"a": 1}]
    assert not channel.closed
    assert list(channel.receive()) == []
    assert channel.closed


def test_sending_to_a_closed_peer_is_a_broken_pipe(ends):
    channel, peer = ends
    peer.close()
    with pytest.raises(BrokenPipeError):
        channel.send({"a": 1})


def test_closing_twice_is_harmless(ends):
    channel, _ = ends
    channel.close()
    channel.close()
    assert channel.closed
