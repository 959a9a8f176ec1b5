"""What is sent to a server, and to one that it redirects to."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from slipway.components.http_session import PlainSession


@pytest.fixture
def server(tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.headers["Host"].partition(":")[0], self.headers["Authorization"]))
            port = self.server.server_port
            self.send_response(302 if self.path != "/end" else 200)
            self.send_header("Location", f"http://{self.path[1:]}:{port}/end")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            """Be silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as bound:
        threading.Thread(target=bound.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{bound.server_port}", seen
        bound.shutdown()


def with_token(request):
    request.headers["Authorization"] = "Bearer T"
    return request


def test_no_login_of_netrc_is_sent_also_to_a_server_that_it_is_redirected_to(server):
    address, seen = server
    with PlainSession() as session:
        session.get(f"{address}/localhost")
    assert seen == [("127.0.0.1", None), ("localhost", None)]


@pytest.mark.parametrize(("host", "sent"), [("localhost", None), ("127.0.0.1", "Bearer T")])
def test_a_token_goes_on_to_the_same_server_only(server, host, sent):
    address, seen = server
    with PlainSession() as session:
        session.get(f"{address}/{host}", auth=with_token)
    assert seen == [("127.0.0.1", "Bearer T"), (host, sent)]


def test_the_login_of_an_address_is_sent_as_that_of_netrc_is_not(server):
    """As a webhook's address may have one."""
    address, seen = server
    with PlainSession() as session:
        session.get(f"{address.replace('//', '//some%40one:pass@')}/end")
    assert seen == [("127.0.0.1", "Basic c29tZUBvbmU6cGFzcw==")]
