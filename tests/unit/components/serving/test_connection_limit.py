"""Places of a server: slow clients stand in the way of nobody but each other."""

import pytest

from slipway.components.serving.connection_limit import Places


class Closing:
    """Remembers whom it closed."""

    def __init__(self, places):
        self.closed = []
        self._places = places

    def enters(self, connection, client="a"):
        return self._places.take(connection, client=client, close=lambda: self.closed.append(connection))


@pytest.fixture
def places():
    return Places(3)


@pytest.fixture
def room(places):
    return Closing(places)


def test_new_connection_takes_the_place_of_the_one_that_has_waited_longest(room):
    assert all(room.enters(number) for number in range(5))
    assert room.closed == [0, 1]


def test_request_that_is_being_answered_is_never_ended(places, room):
    for number in range(3):
        room.enters(number)
        places.is_being_answered(number)
    assert not room.enters(3)
    assert room.closed == []
    places.leave(1)
    assert room.enters(3)


def test_connection_that_was_answered_waits_from_then_on(places, room):
    for number in range(3):
        room.enters(number)
    places.is_being_answered(0)
    places.waits(0)
    room.enters(3)
    assert room.closed == [1]


def test_client_with_the_most_waiting_connections_gives_way_first(room):
    room.enters("honest", client="b")
    for number in range(4):
        room.enters(number, client="a")
    assert room.closed == [0, 1]


def test_connection_that_gave_way_can_still_say_that_it_ends(places, room):
    for number in range(4):
        room.enters(number)
    places.is_being_answered(0)
    places.waits(0)
    places.leave(0)
    assert room.enters(4)
    assert room.closed == [0, 1]
