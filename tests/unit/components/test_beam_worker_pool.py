"""A pool listens at one address, starts and ends workers, and lives as long as the program that it starts."""

import multiprocessing
import os
import signal
import sys
import tempfile
import time

import pytest
from loopback import reserved_port

pytestmark = pytest.mark.slow  # imports Beam
ADDRESS_IN_USE = "cannot listen at .*: another program does, or it is no address of this host"


@pytest.fixture
def module():
    from slipway.components import beam_worker_pool

    return beam_worker_pool


@pytest.fixture
def address():
    with reserved_port() as port:
        yield f"127.0.0.1:{port}"


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "[::0]", "0", "0x0", "[::ffff:0.0.0.0]"])  # noqa: S104
def test_all_interfaces_are_refused(module, host):
    with pytest.raises(ValueError, match=r"every network interface.*name one address: localhost:50000"):
        module.listen(module.WorkerPool(), f"{host}:50000")


@pytest.mark.parametrize("address", ["50000", ":50000", "localhost", "localhost:x"])
def test_address_of_another_form_is_refused(module, address):
    with pytest.raises(ValueError, match="must be HOST:PORT"):
        module.listen(module.WorkerPool(), address)


def test_address_that_is_taken_or_elsewhere_is_refused(module, address):
    server = module.listen(module.WorkerPool(), address)
    try:
        for each in (address, "192.0.2.1:50000"):
            with pytest.raises(ValueError, match=ADDRESS_IN_USE):
                module.listen(module.WorkerPool(), each)
    finally:
        server.stop(grace=None).wait()


@pytest.fixture
def forks(module, monkeypatch):
    """The server that workers are forked from imports nothing large, and ends with the test."""
    for name in ("_HERE", "_SDK_WORKER"):
        monkeypatch.setattr(module, name, "waiting_sdk_worker")
    module.forkserver._forkserver._stop()
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setitem(multiprocessing.current_process()._config, "tempdir", folder)
        yield
        module.forkserver._forkserver._stop()


def test_workers_are_started_and_ended_by_request(module, address, forks, tmp_path):
    import grpc
    from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

    pool = module.WorkerPool()
    server = module.listen(pool, address)
    try:
        with grpc.insecure_channel(address) as channel:
            stub = beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub(channel)
            for name in ("1-1", "1-2"):
                request = beam_fn_api_pb2.StartWorkerRequest(worker_id=name)
                request.control_endpoint.url = str(tmp_path / name)
                assert stub.StartWorker(request).error == ""
            first, second = pool._workers.values()
            while sorted(file.read_text() for file in tmp_path.iterdir()) != ["1-1", "1-2"]:
                assert (first.exitcode, second.exitcode) == (None, None)
                time.sleep(0.01)
            stub.StopWorker(beam_fn_api_pb2.StopWorkerRequest(worker_id="1-1"))
            stub.StopWorker(beam_fn_api_pb2.StopWorkerRequest(worker_id="unknown"))
            assert (first.exitcode, second.exitcode) == (-signal.SIGTERM, None)
        pool.close()
        assert second.exitcode == -signal.SIGTERM
    finally:
        server.stop(grace=None).wait()
        pool.close()


def test_pool_starts_a_program_when_it_listens_and_ends_with_it(main, address):
    connect = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2]))); sys.exit(7)"
    assert main(address, sys.executable, "-c", connect, *address.split(":")) == 7


def test_program_that_is_killed_gives_the_code_that_a_shell_would(main, address):
    assert main(address, "sh", "-c", "kill -9 $$") == 128 + signal.SIGKILL


@pytest.mark.parametrize("name", ["TERM", "HUP"])
def test_program_ends_when_the_pool_is_told_to(main, address, tmp_path, name):
    told = f"echo $$ > $0; kill -{name} $PPID; exec sleep 60"
    assert main(address, "sh", "-c", told, tmp_path / "pid") == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_terminal_may_close_under_nohup(main, address):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert main(address, "sh", "-c", "kill -HUP $PPID; sleep 0.1; exit 5") == 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["localhost"], "localhost must be HOST:PORT"),
        (["localhost:0", "no-such-program"], "no-such-program cannot be started: No such file"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(main, capsys, words, said):
    with pytest.raises(SystemExit, match="2"):
        main(*words)
    assert said in capsys.readouterr().err


@pytest.fixture
def main(module, forks):
    """Calls `main`, which sets signal handlers."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield lambda *words: module.main([str(word) for word in words])
    for each, handler in before.items():
        signal.signal(each, handler)
