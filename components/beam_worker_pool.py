"""Starts the Python processes that a worker of a Beam engine on the same host asks for, its SDK workers.

Whoever reaches the pool can start processes as its user, so it listens at one named address; Beam's own pool
listens on all network interfaces.
"""

import argparse
import ipaddress
import logging
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

_LOG = logging.getLogger(__name__)
_PROGRAM = "python -m slipway.components.beam_worker_pool"
# What Beam's own pool starts, with what its import needs here.
_SDK_WORKER = (
    "import sys\n"
    "from slipway.components.large_imports import large_imports\n"
    "with large_imports(): from apache_beam.runners.worker.sdk_worker import SdkHarness\n"
    "SdkHarness(sys.argv[1], worker_id=sys.argv[2], state_cache_size=0, data_buffer_time_limit_ms=-1).run()"
)
# Requests come only from the engine's worker on this host.
_THREADS = 4
_POLL_S = 0.5
_STOP_LIMIT_S = 10.0


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Beam's service for an environment of the type EXTERNAL."""

    def __init__(self) -> None:
        self._workers: dict[str, subprocess.Popen[bytes]] = {}

    def StartWorker(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802  (as Beam calls it)
        """Start a process of this interpreter that connects to the engine's worker."""
        command = [sys.executable, "-c", _SDK_WORKER, request.control_endpoint.url, request.worker_id]
        try:
            self._workers[request.worker_id] = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        except OSError as error:
            return beam_fn_api_pb2.StartWorkerResponse(error=f"{sys.executable}: {error.strerror}")
        _LOG.info("started worker %s", request.worker_id)
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802  (as Beam calls it)
        """End a worker's process."""
        worker = self._workers.pop(request.worker_id, None)
        if worker is not None:
            _end(worker)
        return beam_fn_api_pb2.StopWorkerResponse()

    def close(self) -> None:
        """End all workers' processes."""
        while self._workers:
            _end(self._workers.popitem()[1])


def listen(pool: WorkerPool, address: str) -> grpc.Server:
    """Return a running server of the pool.

    Args:
        pool: answers the requests.
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
    parser = argparse.ArgumentParser(prog=_PROGRAM, description=__doc__)
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
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: ended.set())
    pool = WorkerPool()
    try:
        server = listen(pool, parsed.address)
    except ValueError as error:
        parser.error(str(error))
    _LOG.info("listening at %s", parsed.address)
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


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
