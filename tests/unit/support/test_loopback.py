"""A port that a server is told beforehand."""

import socket
from http.server import BaseHTTPRequestHandler

import pytest
from loopback import Server, reserved_port


def test_reserved_port_is_refused_to_others_until_its_server_listens():
    with reserved_port() as port:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with Server(("127.0.0.1", port), BaseHTTPRequestHandler):
            socket.create_connection(("127.0.0.1", port)).close()
