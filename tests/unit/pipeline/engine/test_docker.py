"""Nodes that start containers are refused before a run where there is no Docker."""

import socket

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


def test_docker_that_is_there_or_elsewhere_is_not_asked(tmp_path, nowhere):
    say = [Node("Say", "Say", (), by_docker=True)]
    check_docker(say, {"DOCKER_HOST": "tcp://127.0.0.1:1"})
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "docker.sock"))
        check_docker(say, nowhere)


def test_socket_that_cannot_be_looked_at_is_none():
    with pytest.raises(UsageError, match="there is no Docker at unix:///aaa"):
        check_docker([Node("Say", "Say", (), by_docker=True)], {"DOCKER_HOST": f"unix:///{'a' * 5000}"})


def test_an_empty_address_is_none(nowhere, monkeypatch):
    monkeypatch.setattr(docker, "_SOCKET", nowhere["DOCKER_HOST"])
    with pytest.raises(UsageError, match="there is no Docker at unix://"):
        check_docker([Node("Say", "Say", (), by_docker=True)], {"DOCKER_HOST": ""})
