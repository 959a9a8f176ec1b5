"""A Spark cluster for Beam: a standalone master, and one of Spark's workers as each worker."""

import json

from beam_cluster import ADDRESSES, HOST_AT, JOBS, MANAGER, OPTIONS, BeamCluster, Job, job_server

_JAR = job_server("spark")
BEAM = {
    "runner": "spark",
    "options": {**OPTIONS, "files_to_stage": [_JAR], "environment_cache_millis": 600_000},
}
"""What a Beam node is told. By default, each job would send all jars to each worker, and start a Python
process there for each of its steps."""
_JAVA = ("java", "@engines/spark/conf/java.options")
_MANAGER = ADDRESSES[MANAGER]
_MASTER = f"spark://{_MANAGER}:7077"


class SparkCluster(BeamCluster):
    """The cluster, from its start to the end of the context."""

    def workers(self):
        """Return the hosts whose worker the master knows."""
        known = self._ask(f"http://{_MANAGER}:8080/json/")["workers"]
        return _named(each["host"] for each in known if each["state"] == "ALIVE")

    def jobs(self):
        """Return the jobs that the cluster has had, in the order of their start, each a `Job`."""
        while True:
            try:
                return [_job(log) for log in sorted(self._events.iterdir())]
            except FileNotFoundError:  # a job has just ended, and its log got another name
                continue

    @property
    def _events(self):
        return self._folder / "events"

    def _manager(self):
        return [
            *self._with(_MANAGER, *_JAVA, "org.apache.spark.deploy.master.Master"),
            *("--host", _MANAGER, "--port", "7077", "--webui-port", "8080"),
        ]

    def _worker(self, address):
        return [
            *self._with(address, *_JAVA, "org.apache.spark.deploy.worker.Worker"),
            *("--host", address, "--cores", "1", "--memory", "1g"),
            *("--work-dir", str(self._folder / address), _MASTER),
        ]

    def _job_server(self):
        self._events.mkdir()
        address = ADDRESSES[JOBS]
        return [
            *self._with(address, *_JAVA, f"-javaagent:{_JAR}"),
            f"-Dspark.driver.host={address}",
            f"-Dspark.executor.extraJavaOptions=-javaagent:{self._project / _JAR}",
            "-Dspark.ui.enabled=false",
            *("-Dspark.eventLog.enabled=true", f"-Dspark.eventLog.dir={self._events.as_uri()}"),
            *("org.apache.beam.runners.spark.SparkJobServerDriver", f"--spark-master-url={_MASTER}"),
        ]

    def _with(self, address, *command):
        home = (f"SPARK_HOME={self._project}/.engines/spark", "SPARK_SCALA_VERSION=2.12")
        return ["env", *home, f"SPARK_LOCAL_IP={address}", *command]


def _job(log):
    lines = log.read_text().splitlines(keepends=True)
    events = [json.loads(line) for line in lines if line.endswith("\n")]  # the last one may be half written

    def of(kind):
        return [event for event in events if event["Event"] == f"SparkListener{kind}"]

    return Job(
        is_done=bool(of("ApplicationEnd"))
        and {job["Job Result"]["Result"] for job in of("JobEnd")} == {"JobSucceeded"},
        has_lost=bool(of("ExecutorRemoved")),
        hosts=_named(
            task["Task Info"]["Host"]
            for task in of("TaskEnd")
            if task["Task End Reason"]["Reason"] == "Success"
        ),
    )


def _named(addresses):
    return {HOST_AT[address] for address in addresses}
