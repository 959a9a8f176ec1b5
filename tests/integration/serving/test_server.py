"""The server: what it answers, that it follows what is pushed, and that nothing sent to it ends it."""

import base64
import contextlib
import json
import socket
import time

import pytest

from slipway.components.errors import ComponentError
from slipway.components.request_log.request_log import BackgroundLog, LogSettings, RequestLog
from slipway.components.serving import server as serving
from slipway.components.serving.server import ModelServer, is_loopback

pytestmark = pytest.mark.slow


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_status_metadata_and_predictions_have_the_form_of_tf_serving(serve, pushed):
    version = str(pushed(3).version)
    client = serve()
    assert client.ask("GET", "/v1/models/toy") == (
        200,
        {
            "model_version_status": [
                {
                    "version": version,
                    "state": "AVAILABLE",
                    "status": {"error_code": "OK", "error_message": ""},
                }
            ]
        },
    )
    status, metadata = client.ask("GET", f"/v1/models/toy/versions/{version}/metadata")
    assert status == 200
    assert metadata["model_spec"] == {"name": "toy", "signature_name": "", "version": version}
    inputs = metadata["metadata"]["signature_def"]["signature_def"]["serve_raw"]["inputs"]
    assert inputs["fare"]["dtype"] == "DT_FLOAT"
    assert [dim["size"] for dim in inputs["fare"]["tensor_shape"]["dim"]] == ["-1", "1"]
    assert client.predict(2.0) == (200, {"predictions": [[6.0]]})
    columns = {"signature_name": "serve_raw", "inputs": {"fare": [[1.0], [2.0]], "company": [["a"], ["b"]]}}
    path = f"/v1/models/toy/versions/{version}:predict"
    assert client.ask("POST", path, columns) == (200, {"outputs": [[3.0], [6.0]]})


def test_rows_of_lists_are_answered_and_so_is_an_empty_list(serve, pushed):
    pushed(2, lists=True, schema={"columns": {"tags": "BYTES", "prices": "FLOAT"}, "needed": []})
    client = serve()
    rows = [
        {"tags": ["a", "", "c"], "prices": [1.5]},
        {"tags": [], "prices": [0.25, 0.25]},
        {"tags": [], "prices": []},
    ]
    answers = [[2 * (3 + 1.5)], [2 * 0.5], [0.0]]
    together = {name: [row[name] for row in rows] for name in ("tags", "prices")}
    for request, found in (
        ({"instances": rows}, {"predictions": answers}),
        ({"inputs": together}, {"outputs": answers}),
        ({"instances": rows[2:]}, {"predictions": answers[2:]}),  # nothing but empty lists
    ):
        asked = {"signature_name": "serve_raw", **request}
        assert client.ask("POST", "/v1/models/toy:predict", asked) == (200, found)


def test_answers_name_the_class_where_the_workload_names_them(serve, pushed):
    pushed(0.3, classes=["no", "yes"])
    client = serve()
    assert client.predict(2.0) == (200, {"predictions": [[pytest.approx(0.6)]], "classes": ["yes"]})
    columns = {"signature_name": "serve_raw", "inputs": {"fare": [[1.0], [2.0]], "company": [["a"], ["b"]]}}
    status, answer = client.ask("POST", "/v1/models/toy:predict", columns)
    assert (status, answer["classes"]) == (200, ["no", "yes"])


def test_answers_of_several_outputs_name_the_class_of_each_that_has_names(serve, pushed):
    pushed(2, heads=True, output_classes={"payment": ["cash", "card", "app"]})
    client = serve()
    status, answer = client.predict(0.5)
    assert (status, answer["classes"]) == (200, [{"payment": "cash"}])
    assert answer["predictions"][0].keys() == {"cost", "payment"}
    columns = {"signature_name": "serve_raw", "inputs": {"fare": [[0.5], [3.0]], "company": [["a"], ["b"]]}}
    status, answer = client.ask("POST", "/v1/models/toy:predict", columns)
    assert (status, answer["classes"]) == (200, {"payment": ["cash", "app"]})
    assert answer["outputs"]["cost"] == [[1.0], [6.0]]


def test_what_is_answered_is_logged_in_the_columns_that_are_named(serve, pushed, tmp_path):
    version = pushed(3).version
    log = BackgroundLog(RequestLog(LogSettings(str(tmp_path / "log"), ("fare",), ids=True)), tell=print)
    client = serve(log=log)
    row = {"signature_name": "serve_raw", "instances": [{"fare": [2.0], "company": [""]}]}
    for name in ("trip-7", "two words", "x" * 129):
        client.ask("POST", "/v1/models/toy:predict", row, X_Request_Id=name)
    assert client.ask("POST", "/v1/models/toy:predict", {"instances": [{"fare": ["x"]}]})[0] == 400
    log.close()
    [file] = (tmp_path / "log").iterdir()
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert all(line.pop("logged_at") for line in found)
    rest = {"logged_version": version, "fare": 2.0, "logged_prediction": [6.0]}
    assert found == [{**rest, "logged_id": name} for name in ("trip-7", None, None)]


def test_newer_version_is_picked_up_and_the_older_one_no_longer_found(serve, pushed):
    first = pushed(3).version
    client = serve()
    pushed(5)
    until(lambda: client.predict(1.0) == (200, {"predictions": [[5.0]]}))
    status, body = client.ask("GET", f"/v1/models/toy/versions/{first}")
    assert status == 404
    assert body["error"] == f"Servable not found for request: Specific(toy, {first})"


def test_damaged_version_is_never_loaded_and_the_one_before_goes_on(serve, pushed):
    pushed(3)
    client = serve()
    damaged = pushed(5).path
    (damaged / "saved_model.pb").write_bytes(b"\x00" + (damaged / "saved_model.pb").read_bytes()[1:])
    until(lambda: any("Not serving version" in line for line in client.told) or client.predict(1.0)[1] != {})
    assert client.predict(1.0)[0] == 200


def test_version_that_nobody_vouches_for_is_not_served(serve, base, saved_model):
    import shutil

    shutil.copytree(saved_model(3), base / "7")
    with pytest.raises(ComponentError, match="has no version that can be served"):
        serve()


HUGE = b'{"instances": [' + b"1," * 3_000_000 + b"1]}"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "JSON Parse error"),
        (b"", "JSON Parse error"),
        (b"\xff\xfe\x00", "JSON Parse error"),
        (b"[" * 100_000, "JSON Parse error"),
        (b'{"a":' * 50_000, "JSON Parse error"),
        (b"9" * 10_000, "JSON Parse error"),
        (b"null", "must be a JSON object"),
        (HUGE, "The request has 3000001 rows; it may have 100000"),
        (b'{"instances": [' + b"1," * 50_000 + b"1]}", "'examples' must be texts"),
        ({"instances": ["no example"]}, "Could not parse example input"),
        ({"instances": [{"b64": "AAAA"}]}, "Could not parse example input"),
        (
            {"instances": [{"b64": base64.b64encode(b"\xff" * 40).decode()}]},
            "Could not parse example input: it is not a serialized tf.Example",
        ),
        ({"instances": ["[[{{node " * 100_000]}, "Could not parse example input"),
        ({"instances": ["{{function_node " * 100_000]}, "Could not parse example input"),
        ({"instances": [""]}, "fare"),
        (
            {"signature_name": "serve_raw", "instances": [{"fare": ["x"], "company": ["y"]}]},
            "must be of type float",
        ),
        ({"signature_name": "serve_raw", "instances": [{"fare": [1.0]}]}, "'company' is missing"),
    ],
)
def test_hostile_body_gets_an_error_and_the_next_request_an_answer(serve, pushed, body, words):
    pushed(3)
    client = serve()
    status, answer = client.ask("POST", "/v1/models/toy:predict", body)
    assert status == (413 if body is HUGE else 400)
    assert list(answer) == ["error"]
    assert words in answer["error"]
    assert len(answer["error"]) < 500
    assert client.predict(1.0) == (200, {"predictions": [[3.0]]})


def raw(client, *parts):
    """Sends bytes as they are; returns what comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=60) as connection:
        for part in parts:
            connection.sendall(part)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


def is_let_go_of(client, sent):
    """Whether the server closes without an answer; a busy machine may not get to read before the deadline."""
    began = time.monotonic()
    try:
        answer = raw(client, sent)
    except ConnectionResetError:
        answer = b""
    return answer == b"" and time.monotonic() - began >= 0.4  # it had PATIENCE_S


def test_hostile_requests_get_4xx_and_the_server_lives_on(serve, pushed, monkeypatch):
    pushed(3)
    client = serve()
    path = "/v1/models/toy:predict"
    assert client.ask("POST", path, b"", Content_Length=str(9 * 2**20))[0] == 413
    assert client.ask("POST", path, b"", Content_Length="9" * 100)[0] == 413
    assert client.ask("POST", path, b"", Content_Length="-1")[0] == 411
    assert client.ask("POST", path, b"0\r\n\r\n", Transfer_Encoding="chunked", Content_Length="5")[0] == 411
    assert client.ask("GET", "/v1/models/toy", Host="evil.example")[0] == 403
    assert client.ask("GET", "/v1/models/toy", Host="")[0] == 403
    assert client.ask("GET", "/v1/models/toy", Host=f"127.0.0.1.evil.example:{client.port}")[0] == 403
    assert client.ask("GET", "/v1/models/toy", Origin="http://evil.example")[0] == 403
    assert client.ask("GET", "/v1/models/../../etc/passwd")[0] == 404
    assert client.ask("GET", "/v1/models/toy%2f..%2f..%2fetc")[0] == 404
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "X" * 1000):
        assert client.ask(method, "/v1/models/toy")[0] == 405, method
    assert client.ask("HEAD", "/v1/models/toy")[0] == 405
    assert client.ask("GET", path)[0] == 405
    assert b" 400 " in raw(client, b"\x00\x01 / HTTP/x\r\n\r\n").split(b"\r\n")[0]
    assert b" 414 " in raw(client, b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n").split(b"\r\n")[0]
    many = b"".join(b"X-%d: y\r\n" % number for number in range(200))
    assert b" 431 " in raw(client, b"GET / HTTP/1.1\r\n" + many + b"\r\n").split(b"\r\n")[0]
    # A client that never finishes is let go of.
    begun = b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
    with monkeypatch.context() as impatient:
        impatient.setattr(serving, "PATIENCE_S", 0.5)
        assert is_let_go_of(client, begun)
        assert is_let_go_of(client, b"GET /v1/mod")
    assert client.predict(1.0) == (200, {"predictions": [[3.0]]})


REQUEST = (
    b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 77\r\n\r\n"
    b'{"signature_name": "serve_raw", "instances": [{"fare": [1.0], "company": [""]}]}'
)


def test_slow_clients_do_not_block_others(serve, pushed):
    pushed(3)
    client = serve()
    slow = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(3 * serving.AT_ONCE)]
    try:
        for connection in slow:
            with contextlib.suppress(ConnectionError):  # of the first, which gave way already
                connection.sendall(b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: loc")
        for _ in range(20):
            assert client.predict(1.0)[0] == 200
    finally:
        for connection in slow:
            connection.close()


def drip(client, sent):
    """Sends a byte at a time, each well before a timeout between two would be over, until it is let go of."""
    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        connection.sendall(sent)
        connection.settimeout(0.02)
        for _ in range(3000):
            try:
                connection.sendall(b" ")
                if connection.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
    pytest.fail("the server waited on")


@pytest.mark.parametrize("sent", [REQUEST.partition(b"\r\n")[0] + b"\r\nX: ", REQUEST[:-60]])
def test_client_that_drips_is_let_go_of_at_its_deadline(serve, pushed, monkeypatch, sent):
    pushed(3)
    client = serve()
    with monkeypatch.context() as impatient:
        impatient.setattr(serving, "PATIENCE_S", 0.3)
        drip(client, sent)
    assert client.predict(1.0)[0] == 200


@pytest.mark.parametrize("header", [b"Content-Length: 40", b"Transfer-Encoding: chunked"])
def test_body_of_a_get_is_not_taken_for_another_request(serve, pushed, header):
    pushed(3)
    client = serve()
    hidden = b"GET /v1/models/toy HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = raw(
        client, b"GET /v1/models/toy HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n\r\n" + hidden
    )
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in answer


def test_token_is_asked_for_and_compared(serve, pushed):
    pushed(3)
    client = serve(token="geheim")  # noqa: S106
    assert client.ask("GET", "/v1/models/toy")[0] == 401
    assert client.ask("GET", "/v1/models/toy", Authorization="Bearer wrong")[0] == 401
    assert client.ask("GET", "/v1/models/toy", Authorization="Bearer geheim")[0] == 200


@pytest.mark.parametrize("token", ["geheim\n", " geheim", "geh\xe9im", "\udcff"])
def test_token_that_no_client_can_send_is_refused_and_not_repeated(token):
    with pytest.raises(ComponentError, match="no client could send it") as raised:
        ModelServer(name="toy", host="127.0.0.1", port=0, token=token)
    assert "geh" not in raised.value.message


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])  # noqa: S104
def test_host_beyond_this_machine_needs_a_token(host):
    assert not is_loopback(host)
    with pytest.raises(ComponentError, match="reached from other machines") as raised:
        ModelServer(name="toy", host=host, port=0)
    assert "SLIPWAY_SERVE_TOKEN" in raised.value.hint


def test_port_that_is_taken_is_named():
    with ModelServer(name="toy", host="127.0.0.1", port=0) as server:
        port = server.server_address[1]
        server.allow_reuse_address = False
        with pytest.raises(ComponentError, match=f"127.0.0.1:{port} cannot be bound"):
            ModelServer(name="toy", host="127.0.0.1", port=port)
