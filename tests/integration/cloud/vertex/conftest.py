"""Google Cloud on loopback, as far as submitting and scheduling need it.

The token endpoint, the pipeline and the schedule service of Vertex AI, Cloud Storage's buckets and a
container registry. Requests are read with the service's published types, which refuse what they do not know;
answers have the service's form. It can be told to refuse, to fail, to be silent, or to lose its answer.
"""

import contextlib
import json
import re
import threading
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

import loopback
import pytest
import yaml
from requests.adapters import HTTPAdapter

PROJECT, NUMBER, REGION = "my-project", "123456", "europe-west4"
_STATUS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    409: "ALREADY_EXISTS", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE",
}  # fmt: skip


class Refused(Exception):  # noqa: N818
    def __init__(self, code, message, reason="", **metadata):
        super().__init__(message)
        self.code, self.message, self.reason, self.metadata = code, message, reason, metadata

    def body(self):
        detail = {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.reason,
            "domain": "googleapis.com",
            "metadata": self.metadata,
        }
        error = {"code": self.code, "message": self.message, "status": _STATUS[self.code]}
        return {"error": {**error, "details": [detail]} if self.reason else error}


@dataclass
class Fault:
    """The faults of requests whose `METHOD PATH` matches: an answer, a delay, or a lost answer."""

    pattern: str
    refused: Refused | None = None
    delay_s: float | None = 0.0  # None: until the test ends
    loses_answer: bool = False
    times: int = 1


@dataclass
class Google:
    buckets: dict = field(default_factory=lambda: {"my-bucket": "EUROPE-WEST4"})
    images: set = field(default_factory=lambda: {"slipway/manifests/1.0"})
    objects: dict = field(default_factory=dict)  # JSON documents by gs:// address
    jobs: dict = field(default_factory=dict)
    artifacts: dict = field(default_factory=dict)
    contexts: dict = field(default_factory=dict)
    schedules: dict = field(default_factory=dict)
    lives: list = field(default_factory=list)
    faults: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    tokens: int = 0
    page: str = ""  # what a proxy answers to every request to the services
    unfinished: bool = False  # whether operations go on for ever
    on_request: Callable = lambda request: None
    is_over: threading.Event = field(default_factory=threading.Event)

    def fails(self, pattern, code=500, message="it broke", reason="", *, times=1, **metadata):
        self.faults.append(Fault(pattern, Refused(code, message, reason, **metadata), times=times))

    def hangs(self, pattern, seconds):
        self.faults.append(Fault(pattern, delay_s=seconds))

    def is_silent(self, pattern):
        self.faults.append(Fault(pattern, delay_s=None, times=99))

    def loses_answer(self, pattern, *, times=1):
        self.faults.append(Fault(pattern, loses_answer=True, times=times))

    def answer(self, method, path, query, body):
        for pattern, handle in _ROUTES.items():
            match = re.fullmatch(pattern, f"{method} {path}")
            if match:
                return handle(self, query, body, *match.groups())
        raise Refused(404, f"no {method} {path}")

    def token(self, query, body):
        asked = dict(urllib.parse.parse_qsl(body.decode()))
        assert asked["grant_type"].endswith("jwt-bearer")
        self.tokens += 1
        return {"access_token": f"token-{self.tokens}", "expires_in": 3600, "token_type": "Bearer"}

    def bucket(self, query, body, name):
        if name not in self.buckets:
            raise Refused(404, "The specified bucket does not exist.")
        return {"kind": "storage#bucket", "name": name, "location": self.buckets[name]}

    def object(self, query, body, bucket, name):
        address = f"gs://{bucket}/{urllib.parse.unquote(name)}"
        if query.get("alt") != "media" or address not in self.objects:
            raise Refused(404, f"No such object: {address}")
        return self.objects[address]

    def image(self, query, body, name):
        if name not in self.images:
            raise Refused(404, "manifest unknown")
        return {}

    def create_job(self, query, body, project, region):
        from google.cloud.aiplatform_v1.types import PipelineJob

        self.check_place(project, region)
        name = query["pipelineJobId"]
        if not re.fullmatch(r"[a-z][-a-z0-9]{0,127}", name):
            raise Refused(400, f"bad id {name}")
        if name in self.jobs:
            raise Refused(409, f"The PipelineJob {name} already exists")
        job = _read(PipelineJob, body)
        self.check_job(job)
        job.name = f"projects/{NUMBER}/locations/{region}/pipelineJobs/{name}"
        job.state = 2
        self.jobs[name] = job
        return _shown(job)

    def get_job(self, query, body, project, region, name):
        from google.cloud.aiplatform_v1.types import PipelineJob

        self.check_place(project, region)
        if name not in self.jobs:
            raise Refused(404, f"no PipelineJob {name}")
        if self.lives and not self.jobs[name].schedule_name:
            life = self.lives.pop(0) if len(self.lives) > 1 else self.lives[0]
            return {**_shown(self.jobs[name]), **_shown(PipelineJob.from_json(json.dumps(life)))}
        return _shown(self.jobs[name])

    def list_jobs(self, query, body, project, region):
        self.check_place(project, region)
        label, value = re.fullmatch(r'labels\.(\w+)="([^"]*)"', query["filter"]).groups()
        found = [job for job in self.jobs.values() if job.labels.get(label) == value]
        at = int(query.get("pageToken") or 0)
        page = {
            "pipelineJobs": [
                {"name": job.name, "scheduleName": job.schedule_name, "state": job.state.name}
                for job in found[at : at + 2]
            ]
        }
        return page | ({"nextPageToken": str(at + 2)} if found[at + 2 :] else {})

    def list_artifacts(self, query, body, project, region):
        self.check_place(project, region)
        assert query["filter"] == (
            'schema_title="tfx.ModelBlessing" AND state=LIVE AND metadata.blessed.number_value=1'
        )
        live = [
            each
            for each in self.artifacts.values()
            if each.state.name == "LIVE" and each.metadata.get("blessed") == 1
        ]
        return {"artifacts": [_shown(each) for each in live]}

    def update_artifact(self, query, body, project, region, name):
        from google.cloud.aiplatform_v1.types import Artifact

        changed = _read(Artifact, body)
        for field_name in query["updateMask"].split(","):
            setattr(self.artifacts[name], field_name, getattr(changed, field_name))
        return _shown(self.artifacts[name])

    def create_context(self, query, body, project, region):
        from google.cloud.aiplatform_v1.types import Context

        self.check_place(project, region)
        name, made = query["contextId"], _read(Context, body)
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,127}", name):
            raise Refused(400, f"bad context id {name}")
        if name in self.contexts:
            raise Refused(409, f"{name} exists")
        made.name = f"projects/{NUMBER}/locations/{region}/metadataStores/default/contexts/{name}"
        self.contexts[name] = made
        return _shown(made)

    def get_context(self, query, body, project, region, name):
        self.check_place(project, region)
        return _shown(self.contexts[name])

    def update_context(self, query, body, project, region, name):
        from google.cloud.aiplatform_v1.types import Context

        assert query["updateMask"] == "metadata"
        self.contexts[name].metadata = _read(Context, body).metadata
        return _shown(self.contexts[name])

    def add_children(self, query, body, project, region, name):
        from google.cloud.aiplatform_v1.types import AddContextChildrenRequest

        for child in _read(AddContextChildrenRequest, body).child_contexts:
            parents = self.contexts[child.rpartition("/")[2]].parent_contexts
            if self.contexts[name].name not in parents:
                parents.append(self.contexts[name].name)
        return {}

    def blessed(self, run, number, *, blessed=1):
        """Puts the blessing that a run gave on its `number`-th day into the metadata."""
        from google.cloud.aiplatform_v1.types import Artifact

        place = f"projects/{NUMBER}/locations/{REGION}/metadataStores/default/artifacts"
        self.artifacts[str(number)] = Artifact.from_json(
            json.dumps(
                {
                    "name": f"{place}/{number}",
                    "uri": f"gs://my-bucket/pipelines/{NUMBER}/{run}/ModelGate_7/blessing",
                    "schemaTitle": "tfx.ModelBlessing",
                    "state": "LIVE",
                    "metadata": {"blessed": blessed},
                    "createTime": f"2027-01-{number:02}T03:00:00Z",
                }
            )
        )

    def cancel_job(self, query, body, project, region, name):
        if name not in self.jobs:
            raise Refused(404, f"no PipelineJob {name}")
        self.lives = [{"state": "PIPELINE_STATE_CANCELLED"}]
        return {}

    def create_schedule(self, query, body, project, region):
        from google.cloud.aiplatform_v1.types import Schedule

        self.check_place(project, region)
        schedule = _read(Schedule, body)
        request = schedule.create_pipeline_job_request
        if not (schedule.display_name and schedule.max_concurrent_run_count):
            raise Refused(400, "display_name and max_concurrent_run_count are required")
        if request.parent != f"projects/{project}/locations/{region}":
            raise Refused(400, f"bad parent {request.parent}")
        if not re.fullmatch(r"(TZ=\S+ )?\S+( \S+){4}", schedule.cron):
            raise Refused(400, f"bad cron {schedule.cron}")
        self.check_job(request.pipeline_job)
        number = str(1000 + len(self.schedules))
        schedule.name = f"projects/{NUMBER}/locations/{region}/schedules/{number}"
        schedule.state = "ACTIVE"
        schedule.next_run_time = "2027-01-01T02:00:00Z"
        self.schedules[number] = schedule
        return _shown(schedule)

    def list_schedules(self, query, body, project, region):
        self.check_place(project, region)
        assert query["orderBy"] == "create_time desc"
        numbers = sorted(self.schedules, reverse=True)
        at = int(query.get("pageToken") or 0)
        page = {"schedules": [_shown(self.schedules[number]) for number in numbers[at : at + 2]]}
        return page | ({"nextPageToken": str(at + 2)} if numbers[at + 2 :] else {})

    def schedule(self, number):
        if number not in self.schedules:
            raise Refused(404, f"no Schedule {number}")
        return self.schedules[number]

    def get_schedule(self, query, body, project, region, number):
        return _shown(self.schedule(number))

    def pause_schedule(self, query, body, project, region, number):
        self.schedule(number).state = "PAUSED"
        return {}

    def resume_schedule(self, query, body, project, region, number):
        from google.cloud.aiplatform_v1.types import ResumeScheduleRequest

        asked = _read(ResumeScheduleRequest, body)
        self.schedule(number).state = "ACTIVE"
        self.schedule(number).catch_up = asked.catch_up
        return {}

    def delete_schedule(self, query, body, project, region, number):
        self.schedule(number)
        del self.schedules[number]
        return self.operation(query, body, project, region, "9")

    def operation(self, query, body, project, region, number):
        if self.unfinished:
            return {"name": f"projects/1/locations/{region}/operations/{number}"}
        empty = {"@type": "type.googleapis.com/google.protobuf.Empty"}
        return {"name": f"projects/1/locations/{region}/operations/{number}", "done": True, "response": empty}

    def check_place(self, project, region):
        if (project, region) != (PROJECT, REGION):
            raise Refused(403, f"Permission denied on resource project {project}", "CONSUMER_INVALID")

    def check_job(self, job):
        from google.protobuf import json_format
        from kfp.pipeline_spec import pipeline_spec_pb2

        spec = json_format.MessageToDict(type(job).pb(job).pipeline_spec)
        json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
        if spec["schemaVersion"] != "2.1.0":
            raise Refused(400, "schema version")
        if not job.runtime_config.gcs_output_directory.startswith("gs://"):
            raise Refused(400, "runtime_config.gcs_output_directory is required")


_PLACE = r"/v1/projects/([^/]+)/locations/([^/]+)"
_ROUTES = {
    r"POST /token": Google.token,
    r"GET /storage/v1/b/([^/]+)": Google.bucket,
    r"GET /download/storage/v1/b/([^/]+)/o/([^/]+)": Google.object,
    r"HEAD /v2/(.+)": Google.image,
    rf"POST {_PLACE}/pipelineJobs": Google.create_job,
    rf"GET {_PLACE}/pipelineJobs/([^/]+)": Google.get_job,
    rf"POST {_PLACE}/pipelineJobs/([^/]+):cancel": Google.cancel_job,
    rf"GET {_PLACE}/pipelineJobs": Google.list_jobs,
    rf"GET {_PLACE}/metadataStores/default/artifacts": Google.list_artifacts,
    rf"PATCH {_PLACE}/metadataStores/default/artifacts/([^/]+)": Google.update_artifact,
    rf"POST {_PLACE}/metadataStores/default/contexts": Google.create_context,
    rf"GET {_PLACE}/metadataStores/default/contexts/([^/]+)": Google.get_context,
    rf"PATCH {_PLACE}/metadataStores/default/contexts/([^/]+)": Google.update_context,
    rf"POST {_PLACE}/metadataStores/default/contexts/([^/]+):addContextChildren": Google.add_children,
    rf"POST {_PLACE}/schedules": Google.create_schedule,
    rf"GET {_PLACE}/schedules": Google.list_schedules,
    rf"GET {_PLACE}/schedules/(\d+)": Google.get_schedule,
    rf"POST {_PLACE}/schedules/(\d+):pause": Google.pause_schedule,
    rf"POST {_PLACE}/schedules/(\d+):resume": Google.resume_schedule,
    rf"DELETE {_PLACE}/schedules/(\d+)": Google.delete_schedule,
    # The address that the published service has first for operations.
    rf"GET {_PLACE.replace('v1', 'ui')}/operations/(\d+)": Google.operation,
}


def _read(kind, body):
    from google.protobuf import json_format

    try:
        return kind.from_json(body or b"{}")
    except json_format.ParseError as error:
        raise Refused(400, f"Invalid JSON payload received. {error}") from error


def _shown(message):
    return json.loads(type(message).to_json(message))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        """Silent."""

    def _answer(self):
        google = self.server.google
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        google.requests.append(f"{self.command} {url.path}")
        google.on_request(google.requests[-1])
        faults = [f for f in google.faults if re.search(f.pattern, f"{self.command} {url.path}") and f.times]
        for fault in faults[:1]:
            fault.times -= 1
            if google.is_over.wait(fault.delay_s):
                self.close_connection = True
                return
        try:
            self._check(url.path, faults[0].refused if faults else None)
            code, answer = 200, google.answer(self.command, url.path, query, body)
        except Refused as refused:
            code, answer = refused.code, refused.body()
        if faults and faults[0].loses_answer:
            self.close_connection = True
            return
        is_page = google.page and url.path != "/token"
        text = (google.page if is_page else json.dumps(answer)).encode()
        self.send_response(200 if is_page else code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(ConnectionError):  # the client no longer waits
                self.wfile.write(text)

    def _check(self, path, refused):
        is_open = path == "/token" or path.startswith("/v2/")
        if not is_open and not (self.headers.get("Authorization") or "").startswith("Bearer "):
            refused = Refused(401, "Request had no authentication credential.")
        if refused:
            raise refused

    do_GET = do_POST = do_HEAD = do_DELETE = do_PATCH = _answer  # noqa: N815


@pytest.fixture
def google(monkeypatch, log_in):
    """Google Cloud, which the environment variables of this process lead to."""
    server = loopback.Server(("127.0.0.1", 0), _Handler)
    server.google = found = Google()
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with loopback.running(server) as found.address:
        log_in(found.address, project=PROJECT)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", found.address)
        yield found
        found.is_over.set()


@pytest.fixture
def name():
    """Which workload; a test may name others."""
    return "taxi"


@pytest.fixture
def workload(google, project, tmp_path, name):
    """A workload of the project, with a profile for the cloud on loopback."""
    content = yaml.safe_load((project / "workloads" / name / "workload.yaml").read_text())
    content["profiles"]["prod"] = {
        "push": {"destination": f"gs://my-bucket/serving/{name}"},
        "cloud": {
            "image": f"{google.address.removeprefix('http://')}/slipway:1.0",
            "root": "gs://my-bucket/pipelines",
            "labels": {"team": "rides"},
            "failure_policy": "fast",
            "vertex": {
                "project": PROJECT,
                "region": REGION,
                "endpoint": google.address,
                "service_account": f"pipelines@{PROJECT}.iam.gserviceaccount.com",
                "network": f"projects/{NUMBER}/global/networks/my-network",
                "encryption_key": f"projects/{PROJECT}/locations/{REGION}/keyRings/ring/cryptoKeys/key",
            },
        },
    }
    path = tmp_path / "workload.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture
def vertex(workload, project, monkeypatch):
    """The client of Vertex AI, which tries again sooner than it does for users, and for as long."""
    from slipway.components import google_retries
    from slipway.pipeline.cloud.services import vertex
    from slipway.pipeline.config import load_workload

    monkeypatch.setattr(google_retries, "FIRST_WAIT_S", 0.01)
    return vertex.Vertex(load_workload(workload, profile="prod", root=project))


@pytest.fixture
def given_up(monkeypatch):
    """Let the client of Vertex AI give up soon what does not pass."""
    monkeypatch.setattr("slipway.components.google_retries.RETRY_S", 1.5)


@pytest.fixture
def impatient(google, monkeypatch):
    """Makes a limit of requests short; not of those for tokens, which are answered, if late."""
    send = HTTPAdapter.send

    def sent(adapter, request, **options):
        if request.url == f"{google.address}/token":
            options["timeout"] = 60
        return send(adapter, request, **options)

    def call(limit, seconds):
        monkeypatch.setattr(HTTPAdapter, "send", sent)
        monkeypatch.setattr(f"slipway.{limit}", seconds)

    return call


@pytest.fixture
def job(project, vertex, name):
    """A job as `compile` makes it, with what Vertex AI must know beside it."""
    return vertex.request(json.loads((project / f"tests/data/cloud/{name}.json").read_text()))
