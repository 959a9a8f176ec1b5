"""Requests to a tracker: what goes out with them, and errors without the address."""

import socket
import threading

import pytest
import requests
from tracker_double import Collector, served

from slipway.pipeline.tracking.http_client import CALL, UPLOAD, AnswerError, HttpClient, Limits
from slipway.pipeline.tracking.tracker import TrackerError


@pytest.fixture
def server():
    with served(Collector()) as double:
        yield double


def test_credentials_go_with_the_request_and_are_not_shown(server):
    client = HttpClient(server.address, headers={"X-Key": "hunter2"}, auth=("user", "hunter3"))
    assert client.call("POST", "/a", body={"b": 1}) == {}
    [(method, path, headers, body)] = server.got
    assert (method, path, body) == ("POST", "/a", b'{"b": 1}')
    assert headers["X-Key"] == "hunter2"
    assert headers["Authorization"].startswith("Basic ")
    assert "hunter" not in repr(client)


@pytest.mark.parametrize(
    ("answer", "words", "is_away"),
    [
        ((400, {"error_code": "BAD", "message": "no\n such"}), "answered 400: BAD: no such", False),
        ((302, {}), "answered 302", False),
        ((500, b"<html>"), "answered 500", False),
        ((503, [1]), "answered 503", True),
    ],
)
def test_an_answer_that_is_no_success_is_reported(server, answer, words, is_away):
    server.refuses["/a"] = answer
    with pytest.raises(AnswerError) as error:
        HttpClient(server.address).call("GET", "/a", query={"q": "1"})
    assert (str(error.value), error.value.is_away) == (words, is_away)
    assert server.paths() == ["/a"], "it is not followed elsewhere"


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/hunter2", "http://[hunter2"])
def test_who_cannot_be_reached_is_away_and_its_address_not_shown(address):
    with pytest.raises(TrackerError) as error:
        HttpClient(address).call("GET", "/a")
    assert error.value.is_away
    assert "could not be reached" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_whoever_has_answered_is_not_away(server):
    client = HttpClient(server.address)
    client.call("GET", "/a")
    server.refuses["/b"] = (504, {})
    with pytest.raises(AnswerError) as error:
        client.call("PUT", "/b", file=b"model")
    assert not error.value.is_away


def test_a_line_of_netrc_does_not_replace_the_token(server, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password hunter2\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    HttpClient(server.address, headers={"Authorization": "Bearer own"}).call("GET", "/a")
    HttpClient(server.address).call("GET", "/a")
    assert [headers.get("Authorization") for _, _, headers, _ in server.got] == ["Bearer own", None]


def test_a_page_is_no_success(server):
    server.refuses["/a"] = (200, b"\n<!DOCTYPE html>")
    with pytest.raises(TrackerError, match="answered with a page"):
        HttpClient(server.address).call("GET", "/a")


def test_an_answer_is_read_up_to_a_limit(server):
    server.refuses["/a"] = (200, b"1" * ((1 << 20) + 1))
    with pytest.raises(TrackerError, match="more than 1,048,576 bytes"):
        HttpClient(server.address).call("GET", "/a")


def test_the_servers_own_code_is_cut(server):
    server.refuses["/a"] = (400, {"error_code": "A" * 1000})
    with pytest.raises(AnswerError) as error:
        HttpClient(server.address).call("GET", "/a")
    assert len(str(error.value)) < 250


def test_a_header_that_cannot_be_sent_is_reported_without_it(server):
    with pytest.raises(TrackerError) as error:
        HttpClient(server.address, headers={"Authorization": "Bearer hunter2\n"}).call("GET", "/a")
    # requests finds the line break since 2.34; before, http.client does.
    assert str(error.value).startswith("was not contacted: its credentials ")
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "given",
    [
        {"headers": {"Authorization": "Bearer hunter€"}},
        {"auth": ("user", "hunter€")},
    ],
)
def test_credentials_that_are_no_headers_are_reported_without_them(server, given):
    with pytest.raises(TrackerError, match="not valid HTTP headers") as error:
        HttpClient(server.address, **given).call("GET", "/a")
    assert "hunter" not in str(error.value)
    assert "20ac" not in str(error.value)


def test_a_server_that_drips_is_left_at_the_deadline():
    """Each byte comes within the limit for one; the whole never ends."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip():
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not over.wait(0.01):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        limits = Limits(send_s=60, answer_s=60, total_s=0.1)
        client = HttpClient(f"http://127.0.0.1:{listening.getsockname()[1]}", limits=(limits, limits))
        try:
            with pytest.raises(TrackerError, match=r"took longer than 0\.1 s") as error:
                client.call("GET", "/a")
        finally:
            over.set()
            thread.join(60)
    assert error.value.is_away


def test_a_file_has_longer_limits_than_a_call(server, monkeypatch):
    seen, request = [], requests.request

    def noted(*args, **options):
        seen.append(options["timeout"])
        return request(*args, **options)

    monkeypatch.setattr(requests, "request", noted)
    HttpClient(server.address).call("POST", "/a", body={})
    HttpClient(server.address).call("PUT", "/a", file=b"")
    assert seen == [(CALL.send_s, CALL.answer_s), (UPLOAD.send_s, UPLOAD.answer_s)]
    assert UPLOAD.send_s > CALL.send_s
