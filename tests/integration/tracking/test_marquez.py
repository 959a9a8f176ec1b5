"""A run's events in a real Marquez on a real PostgreSQL, read back through Marquez's own API.

Seen only here: that an OpenLineage server takes what is sent, and makes jobs, runs and lineage of it.
"""

import json
import shutil
import subprocess
import time
import urllib.request
from datetime import datetime, timedelta
from urllib.parse import quote

import pytest
from database_servers import PASSWORD, postgresql
from loopback import reserved_port
from watched import listeners_of

from slipway.pipeline.runs.diff import read_fingerprints
from slipway.pipeline.runs.history import History
from slipway.pipeline.tracking import openlineage
from slipway.pipeline.tracking.node_times import node_times
from slipway.pipeline.tracking.run_facts import data_digests

pytestmark = [pytest.mark.slow, pytest.mark.external]

LIMIT_S = 120.0


class Marquez:
    """A server's address, and its answers."""

    def __init__(self, port):
        self.address = f"http://127.0.0.1:{port}"

    def get(self, *path, **query):
        words = "&".join(f"{key}={quote(value, safe='')}" for key, value in query.items())
        place = "/".join(quote(each, safe="") for each in path)
        with urllib.request.urlopen(f"{self.address}/api/v1/{place}?{words}", timeout=30) as answer:  # noqa: S310
            return json.load(answer)

    def job(self, name):
        return self.get("namespaces", "slipway", "jobs", name)

    def runs(self, name):
        """The runs of a job, the first to begin first."""
        found = self.get("namespaces", "slipway", "jobs", name, "runs")["runs"]
        return sorted(found, key=lambda run: run["startedAt"])


@pytest.fixture(scope="module")
def marquez(project, tmp_path_factory):
    """A server without any events."""
    program = project / ".engines" / "marquez" / "marquez.jar"
    if not program.exists():
        pytest.skip("Marquez is not here: `make marquez` compiles it")
    folder = tmp_path_factory.mktemp("marquez")
    with (
        postgresql("marquez") as database,
        reserved_port() as port,
        reserved_port() as admin_port,
        (folder / "log").open("wb") as log,
    ):
        settings = {
            "server": {
                "applicationConnectors": [{"type": "http", "bindHost": "127.0.0.1", "port": port}],
                "adminConnectors": [{"type": "http", "bindHost": "127.0.0.1", "port": admin_port}],
            },
            "db": {
                "driverClass": "org.postgresql.Driver", "user": "slipway", "password": PASSWORD,
                "url": f"jdbc:postgresql://127.0.0.1:{database}/marquez",
            },
            "migrateOnStartup": True, "graphql": {"enabled": False}, "search": {"enabled": False},
        }  # fmt: skip
        (folder / "marquez.json").write_text(json.dumps(settings))  # JSON is YAML
        command = ["java", "-Xmx512m", "-jar", program, "server", folder / "marquez.json"]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            server, until = Marquez(port), time.monotonic() + LIMIT_S
            while True:
                try:
                    server.get("namespaces")
                except OSError:
                    assert process.poll() is None, (folder / "log").read_text()
                    assert time.monotonic() < until, (folder / "log").read_text()
                    time.sleep(0.2)
                else:
                    break
            assert [each.address for each in listeners_of(process.pid) if not each.is_private] == []
            yield server
        finally:
            process.kill()
            process.wait()


def send(marquez, record):
    openlineage.send(record, marquez.address)


def names(datasets):
    return sorted(each["name"] for each in datasets)


def made_by(record, *nodes):
    """The folders of what nodes have made."""
    return sorted(each["uri"] for node in nodes for key in record.node(node).outputs.values() for each in key)


def at(text):
    return datetime.fromisoformat(text)


def in_ms(moment):
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@pytest.fixture(scope="module")
def record(marquez, first_record):
    """The run, sent twice: the second time changes nothing."""
    send(marquez, first_record)
    send(marquez, first_record)
    return first_record


def test_the_run_and_each_node_are_jobs_with_one_run_each(marquez, record):
    jobs = marquez.get("namespaces", "slipway", "jobs", limit="100")["jobs"]
    children = {f"taxi.{node.id}" for node in record.nodes}
    assert {(each["name"], each["parentJobName"]) for each in jobs} == {
        ("taxi", None), *((name, "taxi") for name in children)
    }  # fmt: skip
    [run] = marquez.runs("taxi")
    assert run["state"] == "COMPLETED"
    for node, times in node_times(record).items():
        [own] = marquez.runs(f"taxi.{node}")
        assert own["state"] == "COMPLETED"
        assert (at(own["startedAt"]), at(own["endedAt"])) == (in_ms(times.begin), in_ms(times.end))
        assert own["facets"]["parent"]["run"]["runId"] == run["id"]
        assert "errorMessage" not in own["facets"]


def test_inputs_and_outputs_are_read_back(marquez, record):
    run, trainer = marquez.job("taxi"), marquez.job("taxi.Trainer")
    assert (names(run["inputs"]), names(run["outputs"])) == (["data.csv"], [record.pushed["path"]])
    assert names(trainer["inputs"]) == made_by(record, *record.node("Trainer").upstream)
    assert names(trainer["outputs"]) == made_by(record, "Trainer")
    assert names(marquez.job("taxi.Ingest")["inputs"]) == ["data.csv"]
    assert record.pushed["path"] in names(marquez.job("taxi.Pusher")["outputs"])
    digest = data_digests(read_fingerprints(record.folder))["data.csv"]
    # Marquez counts a version for each run that has written it: the run's as a whole, and the node's.
    for name, version in (("data.csv", digest), (record.pushed["path"], record.pushed["version"])):
        found = marquez.get("namespaces", "file", "datasets", name, "versions")["versions"]
        assert {each["facets"]["version"]["datasetVersion"] for each in found} == {version}


def test_the_lineage_of_the_data_leads_through_the_nodes_to_the_pushed_version(marquez, record):
    graph = marquez.get("lineage", nodeId="dataset:file:data.csv", depth="40")["graph"]
    edges = {(edge["origin"], edge["destination"]) for node in graph for edge in node["outEdges"]}
    edges = {pair for pair in edges if "job:slipway:taxi" not in pair}  # the run as a whole
    reached, before = {"dataset:file:data.csv"}, set()
    while reached != before:
        before = set(reached)
        reached |= {to for origin, to in edges if origin in reached}
    assert f"dataset:file:{record.pushed['path']}" in reached


def test_a_node_that_failed_and_ran_again_is_two_runs_and_the_second_has_no_error(
    marquez, first_record, tmp_path
):
    shutil.copytree(first_record.folder, tmp_path / "runs" / first_record.run_id)
    [failed] = History(tmp_path).runs()
    failed.workload, failed.state, failed.pushed = "resumed", "failed", None
    pusher = failed.node("Pusher")
    pusher.state, pusher.error, pusher.outputs = "failed", {"message": "no space\nleft"}, {}
    send(marquez, failed)
    [run] = marquez.runs("resumed")
    assert run["state"] == "FAILED"

    events = failed.folder / "events.jsonl"
    lines = events.read_text().splitlines()
    again = [each for each in map(json.loads, lines) if each.get("node") == "Pusher" or each.get("run")]
    later = [{**each, "at": (at(each["at"]) + timedelta(minutes=1)).isoformat()} for each in again]
    events.write_text("\n".join([*lines, *map(json.dumps, later)]))
    [resumed] = History(tmp_path).runs()
    resumed.workload = failed.workload
    send(marquez, resumed)
    assert [(each["id"], each["state"]) for each in marquez.runs("resumed")] == [(run["id"], "COMPLETED")]
    assert [
        (each["state"], each["facets"].get("errorMessage", {}).get("message"))
        for each in marquez.runs("resumed.Pusher")
    ] == [("FAILED", "no space"), ("COMPLETED", None)]
