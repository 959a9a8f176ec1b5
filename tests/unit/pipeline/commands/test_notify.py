import contextlib
import json
import math
import os
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

import loopback
import pytest

from slipway.pipeline.commands import notify as module
from slipway.pipeline.commands.notify import message, notify, send
from slipway.pipeline.runs.record import NodeRecord, RunRecord, verdict_path, write_json
from slipway.pipeline.runs.run_target import ModuleRun, RecordedRequest, WorkloadRun

PATH = "B024/whole-path-is-secret"


def _record(state="complete", **config):
    record = RunRecord(run_id="20261121-050000-abcd", workload="taxi", started_at="2026-11-21T05:00:00Z")
    record.state, record.exit_code = state, 0
    given = {"when": ["complete", "failed", "stopped"], "command": [], "webhook_env": None, **config}
    record.target = RecordedRequest(target=WorkloadRun(config=json.dumps({"notify": given})))
    return record


@pytest.fixture
def hook(monkeypatch):
    """A webhook on loopback: the messages that it got, and what it answers."""

    class Hook(BaseHTTPRequestHandler):
        got: ClassVar[list] = []
        logins: ClassVar[list] = []
        answer = 200

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.got.append((self.path, json.loads(body)))
            self.logins.append(self.headers["Authorization"])
            self.send_response(self.answer)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    with loopback.running(loopback.Server(("127.0.0.1", 0), Hook)) as address:
        monkeypatch.setenv("HOOK", f"{address}/{PATH}")
        yield Hook


def test_a_metric_that_is_no_number_stops_no_message(hook, tmp_path):
    """The loss of a model that answers infinity is one; JSON has none."""
    got = tmp_path / "message.json"
    record = _record(webhook_env="HOOK", command=["tee", str(got)])
    record.metrics = {"auc": 0.5, "root_mean_squared_error": math.inf}
    assert list(notify(record)) == []
    ((_, told),) = hook.got
    assert told["metrics"] == {"auc": 0.5, "root_mean_squared_error": None}
    assert json.loads(got.read_text(encoding="utf-8"))["metrics"] == told["metrics"]


def test_a_webhook_gets_the_outcome(hook):
    assert list(notify(_record(webhook_env="HOOK"))) == []
    ((path, told),) = hook.got
    assert path == f"/{PATH}"
    assert told["text"].startswith("taxi (20261121-050000-abcd): ")
    assert (told["state"], told["exit_code"]) == ("complete", 0)


def test_it_says_which_rules_of_which_gate_stopped_the_run_and_nothing_of_what_they_found(tmp_path):
    record = _record(state="stopped")
    record.output = tmp_path
    record.nodes = [NodeRecord("DataGate", state="failed", is_stop=True, error={"message": "3 findings"})]
    found = {"what": "secret", "rows": [{"value": "secret"}]}
    rules = [{"rule": "rows"}, {"rule": "leak"}, {"rule": "rows"}, {"rule": "drift", "stops": False}, {}]
    verdict_path(record.folder, "DataGate").parent.mkdir(parents=True)
    write_json(
        verdict_path(record.folder, "DataGate"),
        {"findings": [{"stops": True, **found, **each} for each in rules]},
    )
    told = message(record)
    assert told["text"].endswith(
        "Stopped: DataGate, after 0 of 1 nodes. What is finished is kept. Rules: rows, leak."
    )
    assert (told["nodes"], told["rules"]) == (["DataGate"], ["rows", "leak"])
    assert "secret" not in json.dumps(told)


def test_a_webhook_gets_no_mention_or_link_that_the_data_holds_and_a_command_the_text_as_it_is(hook, capfd):
    text = "not pushed: class <!channel> & <http://far|here>"
    assert list(send(["cat"], "HOOK", {"text": text})) == []
    ((_, told),) = hook.got
    assert told["text"] == "not pushed: class &lt;!channel&gt; &amp; &lt;http://far|here&gt;"
    assert json.loads(capfd.readouterr().err)["text"] == text


@pytest.mark.parametrize(("login", "sent"), [("", None), ("me:own@", "Basic bWU6b3du")])
def test_a_webhook_gets_the_login_in_its_address_and_none_of_netrc(hook, monkeypatch, tmp_path, login, sent):
    (tmp_path / "netrc").write_text("default login somebody password other\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HOOK", os.environ["HOOK"].replace("//", f"//{login}", 1))
    assert list(notify(_record(webhook_env="HOOK"))) == []
    assert hook.logins == [sent]


def test_metrics_that_json_cannot_hold_are_null(hook, tmp_path):
    program = f"import sys; open({str(tmp_path / 'got')!r}, 'w').write(sys.stdin.read())"
    record = _record(state="stopped", webhook_env="HOOK", command=[sys.executable, "-c", program])
    record.metrics = {"auc": 0.5, "mean_squared_error": math.inf, "precision": math.nan}
    assert list(notify(record)) == []
    ((_, told),) = hook.got
    assert told["metrics"] == {"auc": 0.5, "mean_squared_error": None, "precision": None}
    assert json.loads((tmp_path / "got").read_text())["metrics"] == told["metrics"]


@pytest.mark.parametrize("answer", [302, 404, 500])
def test_a_webhook_that_does_not_take_it_is_reported_without_its_address(hook, answer):
    hook.answer = answer
    (problem,) = notify(_record(webhook_env="HOOK"))
    assert problem == f"notify: the address in HOOK answered {answer}"
    assert len(hook.got) == 1, "it is not followed elsewhere"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (None, "HOOK is not set"),
        (f"file:///{PATH}", "HOOK holds no http(s) address"),
        (f"http://127.0.0.1:9/{PATH}", "could not be reached"),
        (f"http://[{PATH}", "could not be reached"),
    ],
)
def test_a_wrong_address_is_reported_and_not_shown(monkeypatch, address, words):
    monkeypatch.delenv("HOOK", raising=False)
    if address is not None:
        monkeypatch.setenv("HOOK", address)
    (problem,) = notify(_record(webhook_env="HOOK"))
    assert words in problem
    assert PATH not in problem


def test_a_command_gets_the_message_on_its_input(tmp_path):
    program = f"import sys; open({str(tmp_path / 'got')!r}, 'w').write(sys.stdin.read())"
    record = _record(command=[sys.executable, "-c", program])
    assert list(notify(record)) == []
    assert json.loads((tmp_path / "got").read_text()) == message(record)


def test_what_a_command_prints_is_not_mixed_into_the_output(capfd):
    assert list(notify(_record(command=[sys.executable, "-c", "print('told')"]))) == []
    assert capfd.readouterr() == ("", "told\n")


def test_a_script_of_the_project_is_found_wherever_the_run_was_started(monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(module, "PROJECT_ROOT", tmp_path)
    (tmp_path / "tell.sh").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "tell.sh").chmod(0o700)
    assert list(notify(_record(command=["./tell.sh"]))) == []
    assert capfd.readouterr().err == f"{tmp_path}\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["no-such-program"], "cannot be started"),
        ([sys.executable, "-c", "raise SystemExit(3)"], "ended with code 3"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], "took longer than 0.5 s"),
    ],
)
def test_a_command_that_fails_is_reported(monkeypatch, command, words):
    if "longer" in words:
        monkeypatch.setattr(module, "COMMAND_LIMIT_S", 0.5)
    (problem,) = notify(_record(command=command))
    assert words in problem


def test_ends_that_were_not_requested_are_not_told(hook):
    assert list(notify(_record(state="interrupted", webhook_env="HOOK"))) == []
    assert hook.got == []


def test_a_pipeline_without_a_workload_notifies_nobody():
    record = _record()
    record.target = RecordedRequest(target=ModuleRun(pipeline="mine:make"))
    assert list(notify(record)) == []


class Endless:
    """A server that answers any request with bytes that go on for as long as they are read; counts them."""

    def __init__(self, begin, more):
        self.sent, self._begin, self._more = 0, begin, more
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._server.getsockname()[1]}/hook"
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        connection, _ = self._server.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(self._begin)
            while not self._has_ended.is_set():
                self.sent += connection.send(self._more)
                time.sleep(0.005 if len(self._more) == 1 else 0)

    def close(self):
        self._has_ended.set()
        self._server.close()
        self._thread.join()


@pytest.fixture
def endless(monkeypatch):
    started = []

    def call(begin, more):
        started.append(Endless(begin, more))
        monkeypatch.setenv("HOOK", started[-1].address)
        return started[-1]

    yield call
    for each in started:
        each.close()


def test_a_webhook_that_drips_its_answer_is_waited_for_no_longer_than_the_limit(endless, monkeypatch):
    monkeypatch.setattr(module, "WEBHOOK_LIMIT_S", 0.2)
    endless(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x")  # a header without an end
    assert list(notify(_record(webhook_env="HOOK"))) == ["notify: the address in HOOK did not answer in time"]


def test_what_a_webhook_answers_is_not_read(endless):
    hook = endless(b"HTTP/1.1 200 OK\r\nContent-Length: 400000000\r\n\r\n", bytes(2**20))
    assert list(notify(_record(webhook_env="HOOK"))) == []
    assert hook.sent < 100 * 2**20  # what the kernel's buffers take
