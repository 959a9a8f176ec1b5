"""A Flink cluster for Beam: a JobManager, and a TaskManager as each worker."""

from beam_cluster import ADDRESSES, HOST_AT, MANAGER, OPTIONS, BeamCluster, Job, job_server

SLOTS = 2
"""How many tasks a TaskManager works on at once: taskmanager.numberOfTaskSlots in engines/flink/conf."""
BEAM = {"runner": "flink", "options": {**OPTIONS, "parallelism": 2}}
"""What a Beam node is told: one task on each TaskManager, and both on one if the other dies."""
_JAR = job_server("flink")
# Beam's servers in Java listen on all interfaces without it.
_AGENT = f"-javaagent:{_JAR}"
_MANAGER = ADDRESSES[MANAGER]


class FlinkCluster(BeamCluster):
    """The cluster, from its start to the end of the context."""

    def workers(self):
        """Return the hosts whose TaskManager the JobManager knows."""
        return {each["id"] for each in self._answer("/taskmanagers")["taskmanagers"]}

    def jobs(self):
        """Return the jobs that the cluster has had, in the order of their start, each a `Job`."""
        overview = sorted(self._answer("/jobs/overview")["jobs"], key=lambda job: job["start-time"])
        found = [self._answer(f"/jobs/{job['jid']}") for job in overview]
        return [
            Job(job["state"] == "FINISHED", job["timestamps"]["RESTARTING"] > 0, self._hosts_of(job))
            for job in found
        ]

    def _hosts_of(self, job):
        return {
            task["taskmanager-id"]
            for vertex in job["vertices"]
            for task in self._answer(f"/jobs/{job['jid']}/vertices/{vertex['id']}")["subtasks"]
            if task["status"] == "FINISHED"
        }

    def _answer(self, path):
        return self._ask(f"http://{_MANAGER}:8081{path}")

    def _manager(self):
        # The JobManager looks for its own file server at localhost, whatever address it listens at.
        hosts = self._folder / "hosts"
        hosts.write_text(f"{_MANAGER} localhost\n")
        return [
            *_flink("entrypoint.StandaloneSessionClusterEntrypoint", f"-Djdk.net.hosts.file={hosts}"),
            *(f"-Djobmanager.bind-host={_MANAGER}", f"-Drest.bind-address={_MANAGER}"),
        ]

    def _worker(self, address):
        return [
            *_flink("taskexecutor.TaskManagerRunner", _AGENT),
            *(f"-Dtaskmanager.host={address}", f"-Dtaskmanager.bind-host={address}"),
            f"-Dtaskmanager.resource-id={HOST_AT[address]}",
        ]

    def _job_server(self):
        return ["java", _AGENT, "-jar", _JAR, f"--flink-master={_MANAGER}:8081"]


def _flink(program, option):
    return [
        *("java", "@engines/flink/conf/java.options", option, f"org.apache.flink.runtime.{program}"),
        *("--configDir", "engines/flink/conf"),
        *(f"-Djobmanager.rpc.address={_MANAGER}", f"-Drest.address={_MANAGER}"),
    ]
