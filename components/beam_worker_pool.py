"""Starts the Python processes that a worker of a Beam runner on the same host asks for, its SDK workers.

Each job asks for new ones. They are forked from one process that has imported Beam and TensorFlow, which
takes 5 s of CPU. Restart the pool to pick up newly installed packages.

Whoever reaches the pool can start processes as its user, so it listens at one named address; Beam's own pool
listens on all network interfaces.
"""

import argparse
import importlib
import ipaddress
import logging
import multiprocessing
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from typing import Any

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

_LOG = logging.getLogger(__name__)
_HERE = "slipway.components.beam_worker_pool"
# The module that runs a worker; with it the server of forks imports what all of them need.
_SDK_WORKER = "slipway.components.beam_sdk_worker"
# Requests come only from the engine's worker on this host.
_THREADS = 4
_POLL_S = 0.5
_STOP_LIMIT_S = 10.0


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Beam's service for an environment of the type EXTERNAL."""

    def __init__(self) -> None:
        self._forks = multiprocessing.get_context("forkserver")
        self._forks.set_forkserver_preload([_HERE, _SDK_WORKER])
        self._workers: dict[str, BaseProcess] = {}
        # A start may wait seconds for the first fork; one that is on its way ends with the others.
        self._lock = threading.Lock()
        self._is_closed = False

    def StartWorker(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802  (as Beam calls it)
        """Start a process of this interpreter that connects to the engine's worker."""
        asked = (_SDK_WORKER, request.control_endpoint.url, request.worker_id)
        worker = self._forks.Process(target=_work, args=asked)
        with self._lock:
            if self._is_closed:
                return beam_fn_api_pb2.StartWorkerResponse(error="the pool is ending")
            try:
                worker.start()
            except (OSError, EOFError) as error:  # no memory, no file descriptor; the server of forks is gone
                return beam_fn_api_pb2.StartWorkerResponse(error=f"a process could not be started: {error!r}")
            self._workers[request.worker_id] = worker
        _LOG.info("started worker %s", request.worker_id)
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802  (as Beam calls it)
        """End a worker's process."""
        worker = self._workers.pop(request.worker_id, None)
        if worker is not None:
            _end_worker(worker)
        return beam_fn_api_pb2.StopWorkerResponse()

    def close(self) -> None:
        """End all workers' processes."""
        with self._lock:
            self._is_closed = True
        while self._workers:
            _end_worker(self._workers.popitem()[1])


def _work(module: str, control: str, worker_id: str) -> None:
    importlib.import_module(module).work(control, worker_id)


def listen(pool: WorkerPool, address: str) -> grpc.Server:
    """Return a running server of the pool.

    Args:
        address: HOST:PORT, of one interface.

    Raises:
        ValueError: the address is of another form, means all interfaces, or cannot be listened at.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"{address} must be HOST:PORT, e.g. localhost:50000")
    if _is_every_interface(host.strip("[]")):
        raise ValueError(
            f"{address} means every network interface, and whoever reaches the pool can run programs here; "
            f"name one address: localhost:{port} if the engine's worker is on this host"
        )
    # Without the option, two pools could share a port, each answering some of the requests.
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=[("grpc.so_reuseport", 0)])
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    try:
        server.add_insecure_port(address)
    except RuntimeError:
        raise ValueError(
            f"cannot listen at {address}: another program does, or it is no address of this host"
        ) from None
    server.start()
    return server


def main(arguments: Sequence[str]) -> int:
    """Entry point of `python -m slipway.components.beam_worker_pool HOST:PORT [COMMAND...]`."""
    parser = argparse.ArgumentParser(prog=f"python -m {_HERE}", description=__doc__)
    parser.add_argument("address", metavar="HOST:PORT", help="where to listen, e.g. localhost:50000")
    parser.add_argument(
        "command",
        metavar="COMMAND",
        nargs=argparse.REMAINDER,
        help="starts the engine's worker, as soon as the pool listens; each ends with the other",
    )
    parsed = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="worker pool: %(message)s")
    ended = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN:  # as under nohup
            signal.signal(each, lambda *_: ended.set())
    pool = WorkerPool()
    try:
        server = listen(pool, parsed.address)
    except ValueError as error:
        parser.error(str(error))
    _LOG.info("listening at %s", parsed.address)
    forkserver.ensure_running()  # imports ahead of the first request
    try:
        return _run(parsed.command, ended) if parsed.command else _wait(ended)
    except OSError as error:
        parser.error(f"{parsed.command[0]} cannot be started: {error.strerror}")
    finally:
        server.stop(grace=None).wait()
        pool.close()


def _is_every_interface(host: str) -> bool:
    """Return True if a host is, or is resolved to, an address that means every interface, as 0 is."""
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(host, None)}
    except OSError:  # unknown: listening says so
        return False
    addresses = [ipaddress.ip_address(each.partition("%")[0]) for each in found]
    return any((getattr(each, "ipv4_mapped", None) or each).is_unspecified for each in addresses)


def _run(command: Sequence[str], ended: threading.Event) -> int:
    process = subprocess.Popen(command)
    while process.poll() is None and not ended.wait(_POLL_S):
        pass
    if (code := process.poll()) is None:
        _end(process)
        return 0
    _LOG.info("%s has ended with code %d", command[0], code)
    return code if code >= 0 else 128 - code


def _wait(ended: threading.Event) -> int:
    ended.wait()
    return 0


def _end_worker(worker: BaseProcess) -> None:
    # `exitcode` looks first: the id of one that has ended may be another process's by now.
    if worker.exitcode is None:
        worker.terminate()
    worker.join(_STOP_LIMIT_S)
    if worker.exitcode is None:
        worker.kill()
        worker.join()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
