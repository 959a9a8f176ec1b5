"""Kubeflow Pipelines on loopback: the API's experiments, runs and recurring runs.

Requests are read with the published models of the API, which refuse what they do not know; a job with
resolvers is refused as the backend does. It can be told to refuse, to fail, to be silent, or to lose answers.
"""

import contextlib
import json
import re
import threading
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace

import loopback
import pytest
import yaml

from slipway.pipeline.config import read_assignments

TOKEN = "secret-token"  # noqa: S105
_NOW = "2027-01-01T00:00:00Z"


class Refused(Exception):  # noqa: N818
    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


@dataclass
class KubeflowApi:
    experiments: dict = field(default_factory=dict)
    runs: dict = field(default_factory=dict)
    recurring: dict = field(default_factory=dict)
    lives: list = field(default_factory=list)
    faults: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    page: str = ""  # what a proxy before it answers to everything
    is_over: threading.Event = field(default_factory=threading.Event)

    def fails(self, pattern, code, message="it broke", *, times=1, loses_answer=False, delay_s=0.0):
        self.faults.append(
            SimpleNamespace(
                pattern=pattern, code=code, message=message, times=times, loses=loses_answer, delay_s=delay_s
            )
        )

    def is_silent(self, pattern):
        self.fails(pattern, 0, times=99, delay_s=None)  # until the test ends

    def answer(self, method, path, query, body):
        for pattern, handle in _ROUTES.items():
            match = re.fullmatch(pattern, f"{method} {path}")
            if match:
                return handle(self, query, body, *match.groups())
        raise Refused(404, f"Not Found {path}")

    def listed(self, key, items, query):
        found = sorted(items.values(), key=lambda each: each["number"], reverse=True)
        if "filter" in query:
            (predicate,) = json.loads(query["filter"])["predicates"]
            assert (predicate["operation"], predicate["key"]) == ("EQUALS", "display_name")
            found = [each for each in found if each["display_name"] == predicate["stringValue"]]
        at, size = int(query.get("page_token") or 0), min(int(query["page_size"]), 2)
        page = {key: [{k: v for k, v in each.items() if k != "number"} for each in found[at : at + size]]}
        return page | ({"next_page_token": str(at + size)} if found[at + size :] else {})

    def create_experiment(self, query, body):
        made = _read("V2beta1Experiment", body)
        number = len(self.experiments)
        self.experiments[f"e{number}"] = {**made, "experiment_id": f"e{number}", "number": number}
        return self.experiments[f"e{number}"]

    def list_experiments(self, query, body):
        return self.listed("experiments", self.experiments, query)

    def create_run(self, query, body):
        made = self.checked(_read("V2beta1Run", body))
        number = len(self.runs)
        stored = {**made, "run_id": f"r{number}", "state": "PENDING", "created_at": _NOW, "number": number}
        self.runs[f"r{number}"] = stored
        return stored

    def list_runs(self, query, body):
        return self.listed("runs", self.runs, query)

    def get_run(self, query, body, name):
        if name not in self.runs:
            raise Refused(404, f"Run {name} not found")
        life = (self.lives.pop(0) if len(self.lives) > 1 else self.lives[0]) if self.lives else {}
        return {**self.runs[name], **life}

    def terminate_run(self, query, body, name):
        if name not in self.runs:
            raise Refused(404, f"Run {name} not found")
        if self.get_run(query, body, name)["state"] not in ("PENDING", "RUNNING", "PAUSED"):
            raise Refused(400, f"Failed to terminate a run {name}. Row not found")
        self.lives = [{"state": "FAILED", "state_history": [{"state": "CANCELING"}, {"state": "FAILED"}]}]
        return {}

    def create_recurring(self, query, body):
        made = self.checked(_read("V2beta1RecurringRun", body))
        cron = made["trigger"]["cron_schedule"]["cron"]
        if len(cron.split()) != 6:  # robfig/cron 1.2.0 has no TZ=
            raise Refused(400, f"Invalid cron schedule: {cron}")
        number = len(self.recurring)
        status = {"recurring_run_id": f"s{number}", "status": "ENABLED", "number": number}
        self.recurring[f"s{number}"] = {**made, **status}
        return self.recurring[f"s{number}"]

    def list_recurring(self, query, body):
        return self.listed("recurringRuns", self.recurring, query)

    def get_recurring(self, query, body, name):
        if name not in self.recurring:
            raise Refused(404, f"Recurring run {name} not found")
        return self.recurring[name]

    def switch_recurring(self, query, body, name, verb):
        self.get_recurring(query, body, name)["status"] = "ENABLED" if verb == "enable" else "DISABLED"
        return {}

    def delete_recurring(self, query, body, name):
        self.get_recurring(query, body, name)
        del self.recurring[name]
        return {}

    def checked(self, made):
        from google.protobuf import json_format
        from kfp.pipeline_spec import pipeline_spec_pb2

        if made["experiment_id"] not in self.experiments:
            raise Refused(400, "experiment not found")
        sent = made["pipeline_spec"]
        json_format.ParseDict(sent.get("platform_spec", {}), pipeline_spec_pb2.PlatformSpec())
        pipeline = sent.get("pipeline_spec", sent)
        spec = json_format.ParseDict(pipeline, pipeline_spec_pb2.PipelineSpec())
        executors = pipeline["deploymentSpec"]["executors"].values()
        if any("resolver" in executor for executor in executors):
            raise Refused(400, "resolver not implemented yet")
        for task in spec.root.dag.tasks.values():
            for other in task.dependent_tasks:
                if other not in spec.root.dag.tasks:
                    raise Refused(400, f"no task {other}")
        given = made["runtime_config"].get("parameters", {})
        if set(given) != set(spec.root.input_definitions.parameters):
            raise Refused(400, f"parameters {sorted(given)}")
        return made


_BASE = "/apis/v2beta1"
_ROUTES = {
    rf"POST {_BASE}/experiments": KubeflowApi.create_experiment,
    rf"GET {_BASE}/experiments": KubeflowApi.list_experiments,
    rf"POST {_BASE}/runs": KubeflowApi.create_run,
    rf"GET {_BASE}/runs": KubeflowApi.list_runs,
    rf"GET {_BASE}/runs/([^/]+)": KubeflowApi.get_run,
    rf"POST {_BASE}/runs/([^/:]+):terminate": KubeflowApi.terminate_run,
    rf"POST {_BASE}/recurringruns": KubeflowApi.create_recurring,
    rf"GET {_BASE}/recurringruns": KubeflowApi.list_recurring,
    rf"GET {_BASE}/recurringruns/([^/:]+)": KubeflowApi.get_recurring,
    rf"POST {_BASE}/recurringruns/([^/:]+):(enable|disable)": KubeflowApi.switch_recurring,
    rf"DELETE {_BASE}/recurringruns/([^/:]+)": KubeflowApi.delete_recurring,
}


def _read(kind, body):
    """The request, once the API's model of it has taken it."""
    import kfp_server_api

    document = json.loads(body)
    model = getattr(kfp_server_api, kind)
    if unknown := set(document) - set(model.attribute_map.values()):
        raise Refused(400, f"unknown field {sorted(unknown)}")
    read = kfp_server_api.ApiClient().deserialize(SimpleNamespace(data=json.dumps(document)), kind)
    assert read.display_name
    return document


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        """Silent."""

    def _answer(self):
        service = self.server.service
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = f"{self.command} {url.path.removeprefix(_BASE)}"
        service.requests.append(asked)
        fault = next((f for f in service.faults if re.search(f.pattern, asked) and f.times), None)
        if fault:
            fault.times -= 1
            if service.is_over.wait(fault.delay_s):
                self.close_connection = True
                return
        code, answer = self._outcome(service, url.path, query, body, fault)
        if fault and fault.loses:
            self.close_connection = True
            return
        text = (service.page or json.dumps(answer)).encode()
        self.send_response(200 if service.page else code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # the client no longer waits
            self.wfile.write(text)

    def _outcome(self, service, path, query, body, fault):
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, {"code": 16, "message": "Request header error: there is no user identity"}
        if fault and fault.code:
            return fault.code, {"code": 2, "message": fault.message}
        try:
            return 200, service.answer(self.command, path, query, body)
        except Refused as refused:
            return refused.code, {"code": 3, "message": refused.message}

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815


@pytest.fixture
def service(monkeypatch):
    """Kubeflow Pipelines."""
    server = loopback.Server(("127.0.0.1", 0), _Handler)
    server.service = found = KubeflowApi()
    monkeypatch.setenv("KUBEFLOW_TOKEN", TOKEN)
    monkeypatch.setattr("slipway.pipeline.cloud.services.kubeflow_client._WAIT_S", 0.01)
    with loopback.running(server) as found.address:
        yield found
        found.is_over.set()


@pytest.fixture
def name():
    """Which workload; a test may name others."""
    return "taxi"


@pytest.fixture
def workload(service, project, tmp_path, name):
    """A workload of the project, with a profile for Kubeflow on loopback."""
    content = yaml.safe_load((project / "workloads" / name / "workload.yaml").read_text())
    content["profiles"]["prod"] = {
        "push": {"destination": f"gs://my-bucket/serving/{name}"},
        "cloud": {
            "service": "kubeflow",
            "image": "127.0.0.1:9/slipway:1.0",
            "root": "gs://my-bucket/pipelines",
            "kubeflow": {
                "host": service.address,
                "namespace": "rides",
                "service_account": "pipeline-runner",
                "without_baseline": True,
            },
        },
    }
    path = tmp_path / "workload.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture
def golden(project, name):
    """A job as `compile` makes it."""
    return json.loads((project / f"tests/data/cloud/{name}.json").read_text())


@pytest.fixture
def client(workload, project):
    """The client of Kubeflow Pipelines."""
    from slipway.pipeline.cloud.services.kubeflow import Kubeflow
    from slipway.pipeline.config import load_workload

    return Kubeflow(load_workload(workload, profile="prod", root=project))


@pytest.fixture
def chosen(workload, golden, monkeypatch):
    """A workload's schedule; what it starts is the golden job, so that TFX is not imported for each test."""
    from slipway.pipeline.cloud import back_fill
    from slipway.pipeline.cloud import schedule_commands as schedule
    from slipway.pipeline.cloud.cloud_choice import CloudChoice

    monkeypatch.setattr(schedule, "compiled_job", lambda target: golden)
    monkeypatch.setattr(back_fill, "compiled_job", lambda target: golden)
    monkeypatch.setattr(back_fill, "_LOOK_S", 0.01)

    def choose(*sets, called=None):
        return CloudChoice(workload, read_assignments(sets), "prod", called)

    return choose
