"""A cluster for Beam on four hosts, each a network namespace of this machine.

`jobs` has Beam's job server and runs the pipeline, `manager` what knows the cluster's workers, and each other
host is one of these workers, with its worker pool. Only the file system is shared.
"""

import abc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

JOB_SERVER = "localhost:8099"
POOL = "localhost:50000"
JOBS, MANAGER, FIRST, SECOND = HOSTS = ("jobs", "manager", "first", "second")
ADDRESSES = {host: f"10.0.0.{number}" for number, host in enumerate(HOSTS, 1)}
HOST_AT = {address: host for host, address in ADDRESSES.items()}
OPTIONS = {"job_endpoint": JOB_SERVER, "environment_type": "EXTERNAL", "environment_config": POOL}
"""What a Beam node is told on each of these clusters."""
SDK_WORKERS = "multiprocessing.forkserver"
"""What the command lines of a pool's Python workers have, and of the process that they are forked from."""
_WORKER_POOL = ("-m", "slipway.components.beam_worker_pool", POOL)
_START_LIMIT_S = 300.0
_END_LIMIT_S = 60.0
_POLL_S = 0.2
_LISTENS = "0A"
# Nothing of this is seen outside, and all of it goes with the first process.
_NETWORK = """
set -eu
mount -t tmpfs tmpfs /run
mkdir /run/netns
ip link add switch type bridge
ip link set switch up
for each in "$@"; do
    host=${each%=*}
    ip netns add "$host"
    ip link add "$host" type veth peer name eth0 netns "$host"
    ip link set "$host" master switch up
    ip -n "$host" address add "${each#*=}/24" dev eth0
    ip -n "$host" link set eth0 up
    ip -n "$host" link set lo up
done
echo ready
exec sleep infinity
"""
_ALONE = ("--user", "--map-root-user", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child")


def missing(project, engine):
    """Return what this machine lacks for a cluster of an engine, such as flink; "" if nothing."""
    if not (project / job_server(engine)).exists():
        return f"Beam on {engine} is not here: `make {engine}` fetches it"
    absent = [name for name in ("ip", "unshare", "nsenter", "setpriv") if shutil.which(name) is None]
    if absent:
        return f"no {', '.join(absent)} here: apt install iproute2 util-linux"
    tried = subprocess.run(["unshare", *_ALONE, "ip", "link", "add", "switch", "type", "bridge"], check=False)
    return "" if tried.returncode == 0 else "this machine allows no network namespaces, or no bridge in one"


def job_server(engine):
    """Return the path of an engine's job server in the project's folder."""
    return f".engines/{engine}/job-server.jar"


@dataclass(frozen=True)
class Job:
    """What a cluster tells of one of its jobs.

    Args:
        is_done: whether it has ended well.
        has_lost: whether a worker was lost meanwhile.
        hosts: where its tasks have run to their end.
    """

    is_done: bool
    has_lost: bool
    hosts: set


class BeamCluster(abc.ABC):
    """The cluster, from its start to the end of the context.

    Args:
        project: the checkout, where the processes run.
        folder: gets the logs, and what Beam's job server hands to workers; all hosts see it.
        workers: the hosts to start a worker of the cluster on.
        under: words to put before the commands of some hosts, by host.
        has_pools: whether each worker is started by a worker pool, a process of the checkout; without,
            see `start_pool_in_container`.
    """

    def __init__(self, project, folder, workers=(FIRST, SECOND), *, under=None, has_pools=True):
        self._project = project
        self._folder = Path(folder)
        self._workers = workers
        self._under = under or {}
        self._has_pools = has_pools
        self._network = None
        self._inside = 0
        self._space = None
        self._begun = []

    def __enter__(self):
        hosts = [f"{host}={address}" for host, address in ADDRESSES.items()]
        # The network ends with this process, even if that is killed.
        self._network = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", *_ALONE, "bash", "-c", _NETWORK, "bash", *hosts],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert self._network.stdout.readline() == "ready\n", "the hosts' network could not be made"
            pid = self._network.pid
            self._inside = int(Path(f"/proc/{pid}/task/{pid}/children").read_text())
            self._space = Path(f"/proc/{self._inside}/ns/pid").readlink()
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # The first process of a process namespace takes all others with it.
        self._network.kill()
        self._network.wait()
        self._network.stdout.close()
        for process in self._begun:
            process.wait(_END_LIMIT_S)
        until = time.monotonic() + _END_LIMIT_S
        while self._space and (left := self.pids()):
            assert time.monotonic() < until, f"these have not ended: {left}"
            time.sleep(_POLL_S)

    def on(self, host, *command):
        """Return the command line that runs a command on a host, in the project's folder."""
        return [
            *("nsenter", f"--target={self._inside}", "--user", "--preserve-credentials"),
            *("--net", "--mount", "--pid", f"--wdns={self._project}"),
            *("ip", "netns", "exec", host, *map(str, command)),
        ]

    def start_worker(self, host):
        """Start a worker of the cluster, by its worker pool if it has one that is a process."""
        pool = (sys.executable, *_WORKER_POOL) if self._has_pools else ()
        self._begin(host, *pool, *self._worker(ADDRESSES[host]))

    def kill_worker(self, host):
        """Kill a host's worker with all that it has started; returns when its worker pool has ended, too."""
        address = ADDRESSES[host]
        for java in set(self.pids(address)) - set(self.pids(*_WORKER_POOL)):
            os.kill(java, signal.SIGKILL)
        self.wait_until(lambda: not self.pids(address), "the worker pool outlives the cluster's worker")

    @abc.abstractmethod
    def workers(self):
        """Return the hosts whose worker the cluster knows; fails, or has none, as long as nothing answers."""

    @abc.abstractmethod
    def jobs(self):
        """Return the jobs that the cluster has had, in the order of their start, each a `Job`."""

    def start_pool_in_container(self, host, image, *, folders=(), variables=MappingProxyType({}), podman):
        """Start a host's worker pool in a container of an image; returns when it listens.

        Args:
            folders: all that it sees of this machine, each at the same path.
            variables: the container's, beside the image's own.
            podman: the environment variables for Podman itself.
        """
        seen = [f"--volume={folder}:{folder}" for folder in folders]
        told = [f"--env={name}={value}" for name, value in variables.items()]
        # Started from outside: the hosts know one user only, and an image has several. Yet its processes are
        # among the cluster's, and end with them.
        inside = f"/proc/{self._inside}"
        self._log(
            host,
            [
                *("nsenter", f"--net={inside}/root/run/netns/{host}"),
                *("podman", "run", "--rm", "--pull=never", "--network=host", f"--pid=ns:{inside}/ns/pid"),
                *("--read-only", "--cap-drop=all", "--user=0", "--http-proxy=false", "--log-driver=none"),
                *(*seen, *told, image, "python", *_WORKER_POOL),
            ],
            podman,
        )
        self._wait_for_port(host, POOL)

    def wait_until(self, holds, otherwise):
        """Return the first true value of a function."""
        until = time.monotonic() + _START_LIMIT_S
        while not (value := holds()):
            assert time.monotonic() < until, f"{otherwise}: see {self._folder}"
            assert self._network.poll() is None
            time.sleep(_POLL_S)
        return value

    def pids(self, *words, host=None):
        """Return the processes of a host, or of all, whose command line has all these words."""
        network = host and Path(f"/proc/{self._inside}/root/run/netns/{host}").stat().st_ino
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes().decode(errors="replace")
                is_inside = (process / "ns/pid").readlink() == self._space
                is_there = not host or (process / "ns/net").stat().st_ino == network
                if is_inside and is_there and all(word in command for word in words):
                    found.append(int(process.name))
            except OSError:
                continue  # it has ended, or is another user's
        return found

    def listening(self, host):
        """Return the addresses at which a host's processes listen, in hexadecimal as in /proc/net/tcp."""
        done = subprocess.run(
            self.on(host, "cat", "/proc/net/tcp", "/proc/net/tcp6"),
            check=True,
            capture_output=True,
            text=True,
        )
        rows = [line.split() for line in done.stdout.splitlines()]
        return {row[1] for row in rows if row[3] == _LISTENS}

    @abc.abstractmethod
    def _manager(self):
        """Return the command that starts what knows the workers."""

    @abc.abstractmethod
    def _worker(self, address):
        """Return the command that starts a worker at an address."""

    @abc.abstractmethod
    def _job_server(self):
        """Return the command that starts Beam's job server, up to the options that each has."""

    def _start(self):
        self._begin(MANAGER, *self._manager())
        self._begin(
            JOBS,
            *self._job_server(),
            *("--job-host=localhost", "--job-port=8099", "--artifact-port=0", "--expansion-port=0"),
            f"--artifacts-dir={self._folder}/artifacts",
        )
        for host in self._workers:
            self.start_worker(host)
        self.wait_until(self._is_complete, "not all workers are there")
        self._wait_for_port(JOBS, JOB_SERVER)

    def _is_complete(self):
        try:
            return self.workers() == set(self._workers)
        except subprocess.CalledProcessError:
            return False  # nothing answers yet

    def _ask(self, url):
        script = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
        done = subprocess.run(
            self.on(JOBS, sys.executable, "-I", "-S", "-c", script, url),
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return json.loads(done.stdout)

    def _wait_for_port(self, host, address):
        port = f":{int(address.rpartition(':')[2]):04X}"
        self.wait_until(
            lambda: any(each.endswith(port) for each in self.listening(host)),
            f"{address} does not answer on {host}",
        )

    def _begin(self, host, *command):
        # Programs that live for minutes are compiled quickly rather than well; killed ones leave their files.
        java = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={self._folder}"
        words = [*self._under.get(host, ()), *self.on(host, *command)]
        self._log(host, words, {"JDK_JAVA_OPTIONS": java})

    def _log(self, host, command, variables):
        with (self._folder / f"{host}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._begun.append(process)
