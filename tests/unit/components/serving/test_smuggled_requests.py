"""A request that a proxy may read as one is never two here: no model, only sockets."""

import socket

import loopback
import pytest

from slipway.components.serving.live_model import Served
from slipway.components.serving.server import ModelServer

HIDDEN = b"GET /v1/models/toy HTTP/1.1\r\nHost: localhost\r\n\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(HIDDEN)


class _Live:
    served = Served(7, None)


@pytest.fixture(scope="module")
def answers_to():
    """Sends bytes to a server, and gives what comes back until it ends the connection."""
    server = ModelServer(name="toy", host="127.0.0.1", port=0)
    server.live = _Live()
    with loopback.running(server):

        def call(sent):
            with socket.create_connection(server.server_address) as connection:
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
                answer = b""
                while chunk := connection.recv(65536):
                    answer += chunk
            return answer

        yield call


@pytest.mark.parametrize("slashes", [b"//", b"///"])
def test_path_with_more_slashes_in_front_is_not_found_as_received(answers_to, slashes):
    answer = answers_to(HIDDEN.replace(b"/v1", slashes + b"v1"))

    assert answer.startswith(b"HTTP/1.1 404 ")
    assert slashes + b"v1/models/toy" in answer


def test_requests_behind_each_other_are_all_answered(answers_to):
    assert answers_to(HIDDEN * 3).count(b"HTTP/1.1 200 ") == 3


@pytest.mark.parametrize(
    "headers",
    {
        "a space before the colon, behind which Python reads no header": b"X : a\r\n" + LENGTH,
        "the same in the header that counts": LENGTH.replace(b":", b" :"),
        "no colon": b"X\r\n" + LENGTH,
        "no name": b": x\r\n" + LENGTH,
        "an end of a line within a line": b"X: a\r" + LENGTH,
        "a line that goes on": b"X: a\r\n b\r\n" + LENGTH,
        "a NUL": b"X: \0\r\n" + LENGTH,
        "two lengths": b"Content-Length: 0\r\n" + LENGTH,
        "two hosts": b"Host: evil.example\r\n" + LENGTH,
        "a letter beyond ASCII in a name": b"X\xe9: a\r\n" + LENGTH,
    }.values(),
)
@pytest.mark.parametrize("method", [b"GET", b"POST"])
def test_headers_that_may_be_read_otherwise_end_the_connection(answers_to, method, headers):
    answer = answers_to(
        method + b" /v1/models/toy HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n" + HIDDEN
    )

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in answer


@pytest.mark.parametrize("space", [b"\xa0", b"  ", b"\t", b"\x0b", b" \r"])
def test_first_line_with_other_spaces_is_refused(answers_to, space):
    answer = answers_to(b"GET" + space + b"/v1/models/toy HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "line",
    [
        b"A" * 9000,
        b"GET / " + b"A" * 9000,
        b"A" * 9000 + b" / HTTP/1.1",
        b"GET /" + b"A" * 9000 + b" HTTP/1.1",
    ],
)
def test_refusal_repeats_little_of_the_first_line(answers_to, line):
    answer = answers_to(line + b"\r\nHost: localhost\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 4")
    assert 0 < answer.count(b"A" * 50) < 3
    assert answer.count(b"A") < 110
