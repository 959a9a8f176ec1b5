"""Nodes that start containers are refused before a run where there is no Docker."""

import socket
import threading
from contextlib import contextmanager

import pytest

from slipway.pipeline.engine import docker
from slipway.pipeline.engine.docker import check_docker
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.graph import Node


@pytest.fixture
def nowhere(tmp_path):
    """An environment whose Docker is not there."""
    return {"DOCKER_HOST": f"unix://{tmp_path}/docker.sock"}


def test_container_without_docker_is_refused_before_the_run(nowhere):
    nodes = [Node("Train", "Trainer", ()), Node("Say", "Say", (), by_docker=True)]
    with pytest.raises(UsageError, match=r"^Say would start a container, and there is no Docker at unix://"):
        check_docker(nodes, nowhere)


def test_nodes_that_start_no_container_need_none(nowhere):
    check_docker([Node("Train", "Trainer", ())], nowhere)


def test_container_under_a_condition_may_never_start(nowhere):
    check_docker([Node("Say", "Say", (), params={"condition.0": "1"}, by_docker=True)], nowhere)


SAY = Node("Say", "Say", (), by_docker=True)


@pytest.fixture
def daemon(tmp_path):
    """A socket that answers what it is told to, to one question; None: nothing."""

    @contextmanager
    def answering(answer):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(tmp_path / "docker.sock"))
            server.listen()

            def serve():
                asked, _ = server.accept()
                with asked:
                    asked.recv(100)
                    asked.sendall(answer)

            if answer is not None:
                threading.Thread(target=serve, daemon=True).start()
            yield

    return answering


def test_docker_that_answers_is_there_and_one_elsewhere_is_not_asked(daemon, nowhere):
    check_docker([SAY], {"DOCKER_HOST": "tcp://127.0.0.1:1"})
    with daemon(b"HTTP/1.0 200 OK\r\n\r\nOK"):
        check_docker([SAY], nowhere)


@pytest.mark.parametrize(
    ("answer", "words"),
    [(None, "Docker does not answer within 0.1 s at unix://"), (b"", "Docker gives no answer at unix://")],
)
def test_docker_that_hangs_is_refused_before_the_run(daemon, nowhere, monkeypatch, answer, words):
    if answer is None:  # else it is answered, if late on a busy machine
        monkeypatch.setattr(docker, "_ANSWER_S", 0.1)
    with daemon(answer), pytest.raises(UsageError, match=f"^Say would start a container, and {words}"):
        check_docker([SAY], nowhere)


def test_socket_of_a_daemon_that_has_ended_is_refused(tmp_path, nowhere):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "docker.sock"))
    with pytest.raises(UsageError, match=r"no Docker answers \(Connection refused\) at unix://"):
        check_docker([SAY], nowhere)


def test_socket_that_cannot_be_looked_at_is_none():
    with pytest.raises(UsageError, match="there is no Docker at unix:///aaa"):
        check_docker([Node("Say", "Say", (), by_docker=True)], {"DOCKER_HOST": f"unix:///{'a' * 5000}"})


def test_an_empty_address_is_none(nowhere, monkeypatch):
    monkeypatch.setattr(docker, "_SOCKET", nowhere["DOCKER_HOST"])
    with pytest.raises(UsageError, match="there is no Docker at unix://"):
        check_docker([Node("Say", "Say", (), by_docker=True)], {"DOCKER_HOST": ""})
