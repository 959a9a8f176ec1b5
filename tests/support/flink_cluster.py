"""A Flink cluster for Beam on four hosts, each a network namespace of this machine.

`jobs` has Beam's job server and runs the pipeline, `manager` the JobManager, and each other host one of the
TaskManagers, with its worker pool. Only the file system is shared.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import MappingProxyType

JOB_SERVER = "localhost:8099"
POOL = "localhost:50000"
JOBS, MANAGER, FIRST, SECOND = HOSTS = ("jobs", "manager", "first", "second")
ADDRESSES = {host: f"10.0.0.{number}" for number, host in enumerate(HOSTS, 1)}
SLOTS = 2
"""How many tasks a TaskManager works on at once: taskmanager.numberOfTaskSlots in engines/flink/conf."""
# What a Beam node is told: one task on each TaskManager, and both on one if the other dies.
BEAM = {
    "runner": "flink",
    "options": {
        "job_endpoint": JOB_SERVER,
        "environment_type": "EXTERNAL",
        "environment_config": POOL,
        "parallelism": 2,
    },
}
SDK_WORKERS = "multiprocessing.forkserver"
"""What the command lines of a pool's Python workers have, and of the process that they are forked from."""
_WORKER_POOL = ("-m", "slipway.components.beam_worker_pool", POOL)
_START_LIMIT_S = 300.0
_END_LIMIT_S = 60.0
_POLL_S = 0.2
_LISTENS = "0A"
_JAR = ".engines/flink/job-server.jar"
# Beam's servers in Java listen on all interfaces without it.
_AGENT = f"-javaagent:{_JAR}"
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


def missing(project):
    """Return what this machine lacks for a cluster; "" if nothing."""
    program = project / ".engines/flink/job-server.jar"
    if not program.exists():
        return "Beam on Flink is not here: `make flink` fetches it"
    absent = [name for name in ("ip", "unshare", "nsenter", "setpriv") if shutil.which(name) is None]
    if absent:
        return f"no {', '.join(absent)} here: apt install iproute2 util-linux"
    tried = subprocess.run(["unshare", *_ALONE, "ip", "link", "add", "switch", "type", "bridge"], check=False)
    return "" if tried.returncode == 0 else "this machine allows no network namespaces, or no bridge in one"


class FlinkCluster:
    """The cluster, from its start to the end of the context.

    Args:
        project: the checkout, where the processes run.
        folder: gets the logs, and what Beam's job server hands to workers; all hosts see it.
        task_managers: the hosts to start a TaskManager on.
        under: words to put before the commands of some hosts, by host.
        has_pools: whether each TaskManager is started by a worker pool, a process of the checkout; without,
            see `start_pool_in_container`.
    """

    def __init__(self, project, folder, task_managers=(FIRST, SECOND), *, under=None, has_pools=True):
        self._project = project
        self._folder = Path(folder)
        self._task_managers = task_managers
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

    def start_task_manager(self, host):
        """Start a TaskManager, by its worker pool if it has one that is a process."""
        address = ADDRESSES[host]
        self._begin(
            host,
            *((sys.executable, *_WORKER_POOL) if self._has_pools else ()),
            *self._flink("taskexecutor.TaskManagerRunner", _AGENT),
            *(f"-Dtaskmanager.host={address}", f"-Dtaskmanager.bind-host={address}"),
            f"-Dtaskmanager.resource-id={host}",
        )

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

    def kill_task_manager(self, host):
        """Kill a TaskManager; returns when the worker pool that started it has ended, too."""
        name = f"-Dtaskmanager.resource-id={host}"
        [java] = set(self.pids(name)) - set(self.pids(*_WORKER_POOL, name))
        os.kill(java, signal.SIGKILL)
        self.wait_until(lambda: not self.pids(name), "the worker pool outlives its TaskManager")

    def task_managers(self):
        """Return the hosts whose TaskManager the JobManager knows."""
        return {each["id"] for each in self.ask("/taskmanagers")["taskmanagers"]}

    def jobs(self):
        """Return the jobs that Flink has had, in the order of their start, as it describes them."""
        jobs = sorted(self.ask("/jobs/overview")["jobs"], key=lambda job: job["start-time"])
        return [self.ask(f"/jobs/{job['jid']}") for job in jobs]

    def hosts_of(self, job):
        """Return the hosts of a job's tasks that run, or have run to their end."""
        found = set()
        for vertex in job["vertices"]:
            for task in self.ask(f"/jobs/{job['jid']}/vertices/{vertex['id']}")["subtasks"]:
                if task["status"] in ("RUNNING", "FINISHED"):
                    found.add(task["taskmanager-id"])
        return found

    def ask(self, path):
        """Return what the JobManager's REST interface answers."""
        script = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
        url = f"http://{ADDRESSES[MANAGER]}:8081{path}"
        done = subprocess.run(
            self.on(JOBS, sys.executable, "-I", "-S", "-c", script, url),
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return json.loads(done.stdout)

    def wait_until(self, holds, otherwise):
        """Return the first true value of a function."""
        until = time.monotonic() + _START_LIMIT_S
        while not (value := holds()):
            assert time.monotonic() < until, f"{otherwise}: see {self._folder}"
            assert self._network.poll() is None
            time.sleep(_POLL_S)
        return value

    def pids(self, *words):
        """Return the processes of the hosts whose command line has all these words."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes().decode(errors="replace")
                is_inside = (process / "ns/pid").readlink() == self._space
                if is_inside and all(word in command for word in words):
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

    def _start(self):
        manager = ADDRESSES[MANAGER]
        # The JobManager looks for its own file server at localhost, whatever address it listens at.
        (self._folder / "hosts").write_text(f"{manager} localhost\n")
        self._begin(
            MANAGER,
            *self._flink(
                "entrypoint.StandaloneSessionClusterEntrypoint",
                f"-Djdk.net.hosts.file={self._folder}/hosts",
            ),
            *(f"-Djobmanager.bind-host={manager}", f"-Drest.bind-address={manager}"),
        )
        self._begin(
            JOBS,
            *("java", _AGENT, "-jar", _JAR, f"--flink-master={manager}:8081"),
            *("--job-host=localhost", "--job-port=8099", "--artifact-port=0", "--expansion-port=0"),
            f"--artifacts-dir={self._folder}/artifacts",
        )
        for host in self._task_managers:
            self.start_task_manager(host)
        self.wait_until(self._is_complete, "not all TaskManagers are there")
        self._wait_for_port(JOBS, JOB_SERVER)

    def _wait_for_port(self, host, address):
        port = f":{int(address.rpartition(':')[2]):04X}"
        self.wait_until(
            lambda: any(each.endswith(port) for each in self.listening(host)),
            f"{address} does not answer on {host}",
        )

    def _is_complete(self):
        try:
            return self.task_managers() == set(self._task_managers)
        except subprocess.CalledProcessError:
            return False  # no JobManager yet

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

    def _flink(self, program, option):
        return [
            *("java", "@engines/flink/conf/java.options", option, f"org.apache.flink.runtime.{program}"),
            *("--configDir", "engines/flink/conf"),
            *(f"-Djobmanager.rpc.address={ADDRESSES[MANAGER]}", f"-Drest.address={ADDRESSES[MANAGER]}"),
        ]
