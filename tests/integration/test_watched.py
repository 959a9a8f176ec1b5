"""The sockets that a command listens on are found: the fixtures that run our commands rely on it."""

import os
import sys

import pytest
from watched import run_watched

LISTENS = """
import socket, subprocess, sys, time
family, address = (socket.AF_UNIX, sys.argv[1]) if "/" in sys.argv[1] else (socket.AF_INET6, (sys.argv[1], 0))
with socket.socket(family) as server:
    server.bind(address)
    server.listen()
    time.sleep(1)
"""
IN_A_CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]], check=True)"


@pytest.mark.parametrize(("address", "is_private"), [("::", False), ("::1", True), ("::ffff:0.0.0.0", False)])
def test_a_port_of_a_command_or_of_its_child_is_seen_with_its_address(tmp_path, address, is_private):
    command = [sys.executable, "-c", IN_A_CHILD, LISTENS, address]
    finished = run_watched(command, cwd=tmp_path, env=os.environ, timeout_s=60)
    assert finished.returncode == 0, finished.stderr
    [found] = finished.listeners
    assert found.address.rpartition(":")[0] == f"[{address}]"
    assert found.is_private == is_private


@pytest.mark.parametrize(("mode", "is_private"), [(0o700, True), (0o755, False)])
def test_a_named_socket_is_private_in_a_folder_of_the_owners_alone(tmp_path, mode, is_private):
    folder = tmp_path / "sockets"
    folder.mkdir()
    folder.chmod(mode)
    command = [sys.executable, "-c", LISTENS, str(folder / "socket")]
    [found] = run_watched(command, cwd=tmp_path, env=os.environ, timeout_s=60).listeners
    assert (found.address, found.is_private) == (str(folder / "socket"), is_private)
