"""Servers of Beam and TFX listen to nobody beyond this machine."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from watched import is_private, listening

from slipway.pipeline.engine.processes.grpc_on_loopback import (
    bind_to_loopback,
    on_loopback,
    watch_no_executions,
)


@pytest.fixture
def grpc(monkeypatch):
    import grpc

    monkeypatch.setattr(grpc, "server", grpc.server)  # put back at the end
    return grpc


@pytest.mark.parametrize("address", ["[::]:0", "0.0.0.0:0"])
def test_server_that_wants_all_interfaces_gets_loopback(grpc, address):
    bind_to_loopback()
    bind_to_loopback()  # as each run of a process does
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port(address)
    server.start()
    bound = [each for each in listening().values() if each.endswith(f":{port}")]
    server.stop(None).wait()
    assert bound
    assert all(map(is_private, bound))


@pytest.mark.parametrize("address", ["192.0.2.1:50000", "localhost:0", "unix:/tmp/socket", "[::1]:0"])
def test_address_that_is_named_stays(address):
    assert on_loopback(address) == address


def test_launcher_asks_for_no_port_and_starts_no_server():
    launcher = SimpleNamespace()
    watch_no_executions(launcher)
    assert launcher.portpicker.pick_unused_port() == 0
    watcher = launcher.execution_watcher.ExecutionWatcher(
        port=0, mlmd_connection=None, execution=None, creds=None
    )
    watcher.start()
    watcher.stop()
    assert watcher.address == ""
