"""Deploying to an endpoint, with the real client, against a service on loopback.

Requests are read with the service's published types, which refuse what they do not know, and held against
its rules as far as its reference tells them. The real service was never asked.
"""

import json
import re
import urllib.parse
from dataclasses import replace
from http.server import BaseHTTPRequestHandler

import loopback
import pytest
from small_workload import small_workload

from slipway.components import google_retries
from slipway.components.errors import ComponentError
from slipway.components.google_credentials import find_credentials
from slipway.components.pusher.endpoint import EndpointSettings
from slipway.components.pusher.publish_to_bucket import publish_to_bucket
from slipway.components.pusher.versions import Published
from slipway.components.pusher.vertex_endpoint import VertexEndpoint
from slipway.pipeline.commands.versions import rollback

pytestmark = [
    pytest.mark.slow,
    # The client leaves a connection that broke to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

PLACE = "projects/p/locations/europe-west4"
TYPES = "type.googleapis.com/google.cloud.aiplatform.v1."


class Refused(Exception):  # noqa: N818
    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


class Service:
    """The model registry and the endpoints of one project in one region; `models`: versions by id."""

    def __init__(self):
        self.models, self.endpoints, self.requests, self.faults = {}, {}, [], []
        self.evaluations = {}
        # Whether operations end only after the answer; those that fail, by kind, with their error.
        self.is_slow, self.failed, self.ended = False, ("", {}), {}

    def fail(self, pattern, kind, times=1):
        """What happens to requests like that: a status code, `gateway`, or `lost`: done, but no answer."""
        self.faults.append({"pattern": pattern, "kind": kind, "times": times})

    def changes(self):
        return [each.rpartition("/")[2] for each in self.requests if not each.startswith("GET")]

    def answer(self, method, path, query, body):
        for pattern, handle in self.ROUTES.items():
            if found := re.fullmatch(pattern, f"{method} {urllib.parse.unquote(path)}"):
                return handle(self, query, body, *found.groups())
        raise Refused(404, f"no {method} {path}")

    def answered(self, method, url, body, fault):
        if isinstance(fault, int):
            raise Refused(fault, "injected")
        if fault == "gateway":
            raise Refused(504, "upstream timed out")
        return self.answer(method, url.path, dict(urllib.parse.parse_qsl(url.query)), body)

    def token(self, query, body):
        return {"access_token": "t", "expires_in": 3600, "token_type": "Bearer"}

    def version(self, name):
        """A version by its model's id, `@` and its number or an alias; without them, the default."""
        model, _, which = name.partition("@")
        for each in self.models.get(model, ()):
            if which == each.version_id or (which or "default") in each.version_aliases:
                return each
        raise Refused(404, f"no {name}")

    def get_model(self, query, body, name):
        found = self.version(name)
        return json.loads(type(found).to_json(found))

    def upload(self, query, body):
        from google.cloud.aiplatform_v1.types import UploadModelRequest

        asked = self.read(UploadModelRequest, body)
        name, made = asked.model_id, asked.model
        if asked.parent_model:
            name = asked.parent_model.removeprefix(f"{PLACE}/models/")
            if asked.model_id or name not in self.models:
                raise Refused(400 if asked.model_id else 404, f"no version of {name} with an id of one's own")
        elif name in self.models:
            raise Refused(409, f"{name} exists")
        if not re.fullmatch(r"[a-z_][a-z0-9_-]{0,62}", name):
            raise Refused(400, f"bad model id {name}")
        if not (made.display_name and made.container_spec.image_uri):
            raise Refused(400, "display_name and container_spec.image_uri are required")
        if not made.artifact_uri.startswith("gs://"):
            raise Refused(400, "artifact_uri must be in Cloud Storage")
        for alias in made.version_aliases:
            if not re.fullmatch(r"[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]", alias):
                raise Refused(400, f"bad alias {alias}")
        for key, value in made.labels.items():
            if not re.fullmatch(r"[a-z][a-z0-9_-]{0,62}=[a-z0-9_-]{0,63}", f"{key}={value}"):
                raise Refused(400, f"bad label {key}={value}")
        versions = self.models.setdefault(name, [])
        # An alias of one version that is given to another leaves the one.
        for each in versions:
            each.version_aliases = [a for a in each.version_aliases if a not in made.version_aliases]
        made.name, made.version_id = f"{PLACE}/models/{name}", str(len(versions) + 1)
        versions.append(made)
        return self.operation("UploadModelResponse", model=made.name, modelVersionId=made.version_id)

    def list_evaluations(self, query, body, name):
        self.version(name)
        shown = [json.loads(type(each).to_json(each)) for each in self.evaluations.get(name, ())]
        return {"modelEvaluations": shown}

    def import_evaluation(self, query, body, name):
        from google.cloud.aiplatform_v1.types import ImportModelEvaluationRequest

        self.version(name)
        made = self.read(ImportModelEvaluationRequest, body).model_evaluation
        if not (made.metrics_schema_uri.startswith("gs://google-cloud-aiplatform/schema/") and made.metrics):
            raise Refused(400, "metrics without their schema")
        self.evaluations.setdefault(name, []).append(made)
        return json.loads(type(made).to_json(made))

    def get_endpoint(self, query, body, name):
        return self.shown(self.endpoints, name)

    def create_endpoint(self, query, body):
        from google.cloud.aiplatform_v1.types import Endpoint

        name = query["endpointId"]
        if not re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", name):
            raise Refused(400, f"bad endpoint id {name}")
        made = self.read(Endpoint, body)
        if not made.display_name:
            raise Refused(400, "display_name is required")
        self.add(self.endpoints, name, made, "endpoints")
        return self.operation("Endpoint", **self.shown(self.endpoints, name))

    def deploy(self, query, body, name):
        from google.cloud.aiplatform_v1.types import DeployModelRequest

        asked = self.read(DeployModelRequest, body)
        endpoint, deployed = self.endpoints[name], asked.deployed_model
        deployed.model_version_id = self.version(deployed.model.rpartition("/")[2]).version_id
        if not re.fullmatch(r"[0-9]{1,10}", deployed.id):
            raise Refused(400, f"bad deployed model id {deployed.id}")
        there = {each.id for each in endpoint.deployed_models}
        if deployed.id in there:
            raise Refused(409, f"{deployed.id} exists")
        resources = deployed.dedicated_resources
        if not (resources.machine_spec.machine_type and resources.min_replica_count >= 1):
            raise Refused(400, "dedicated_resources")
        split = dict(asked.traffic_split)
        if sum(split.values()) != 100 or not split.keys() <= there | {"0"}:
            raise Refused(400, f"traffic_split {split}")
        # The service answers with the project's number.
        deployed.model = deployed.model.replace("projects/p/", "projects/123/").partition("@")[0]
        endpoint.deployed_models.append(deployed)
        split[deployed.id] = split.pop("0")
        endpoint.traffic_split = split
        return self.operation("DeployModelResponse", deployedModel={"id": deployed.id})

    def undeploy(self, query, body, name):
        from google.cloud.aiplatform_v1.types import UndeployModelRequest

        asked = self.read(UndeployModelRequest, body)
        endpoint = self.endpoints[name]
        if endpoint.traffic_split.get(asked.deployed_model_id):
            raise Refused(400, "it gets traffic")
        endpoint.deployed_models = [e for e in endpoint.deployed_models if e.id != asked.deployed_model_id]
        endpoint.traffic_split = {k: v for k, v in endpoint.traffic_split.items() if v}
        return self.operation("UndeployModelResponse")

    def read(self, kind, body):
        from google.protobuf import json_format

        try:
            return kind.from_json(body)
        except json_format.ParseError as error:
            raise Refused(400, f"Invalid JSON payload received. {error}") from error

    def add(self, stored, name, made, kind):
        if name in stored:
            raise Refused(409, f"{name} exists")
        made.name = f"{PLACE}/{kind}/{name}"
        stored[name] = made

    def shown(self, stored, name):
        if name not in stored:
            raise Refused(404, f"no {name}")
        return json.loads(type(stored[name]).to_json(stored[name]))

    def operation(self, kind, **response):
        number = str(len(self.requests))
        name = f"{PLACE}/operations/{number}"
        outcome = {"response": {"@type": TYPES + kind, **response}}
        if kind == self.failed[0]:
            outcome = {"error": self.failed[1]}
        self.ended[number] = {"name": name, "done": True, **outcome}
        return {"name": name} if self.is_slow else self.ended[number]

    def get_operation(self, query, body, number):
        return self.ended[number]

    ROUTES = {  # noqa: RUF012
        r"POST /token": token,
        rf"GET /ui/{PLACE}/operations/([0-9]+)": get_operation,
        rf"GET /v1/{PLACE}/models/([^/:]+)": get_model,
        rf"POST /v1/{PLACE}/models:upload": upload,
        rf"GET /v1/{PLACE}/models/([^/:]+)/evaluations": list_evaluations,
        rf"POST /v1/{PLACE}/models/([^/:]+)/evaluations:import": import_evaluation,
        rf"GET /v1/{PLACE}/endpoints/([^/:]+)": get_endpoint,
        rf"POST /v1/{PLACE}/endpoints": create_endpoint,
        rf"POST /v1/{PLACE}/endpoints/([^/:]+):deployModel": deploy,
        rf"POST /v1/{PLACE}/endpoints/([^/:]+):undeployModel": undeploy,
    }


class Handler(loopback.JsonAnswers, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def serve(self):
        service, url = self.server.service, urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = f"{self.command} {urllib.parse.unquote(url.path)}"
        service.requests.append(asked)
        fault = next((f for f in service.faults if f["times"] and re.search(f["pattern"], asked)), None)
        kind = fault["kind"] if fault else None
        if fault:
            fault["times"] -= 1
        try:
            code, answer = 200, service.answered(self.command, url, body, kind)
        except Refused as refused:
            code, answer = refused.code, {"error": {"code": refused.code, "message": refused.message}}
            if kind == "gateway":
                answer = {"error": refused.message}
        if kind == "lost":
            self.close_connection = True
            return
        self.answer(code, answer)

    do_GET = do_POST = serve  # noqa: N815


@pytest.fixture
def service(monkeypatch, log_in):
    monkeypatch.setattr(google_retries, "FIRST_WAIT_S", 0.01)
    server = loopback.Server(("127.0.0.1", 0), Handler)
    server.service = found = Service()
    with loopback.running(server) as found.address:
        log_in(found.address)
        yield found


@pytest.fixture
def deploy(service):
    """Deploys a version of that number, with settings of one's own; returns what was said."""

    def call(number, provenance=None, **changed):
        settings = EndpointSettings(
            project="p",
            region="europe-west4",
            name="taxi",
            container="image",
            machine_type="n1-standard-2",
            min_replicas=1,
            max_replicas=1,
            traffic=100,
            address=service.address,
        )
        published = Published(number, "gs://b/serving/taxi", was_there=False)
        return VertexEndpoint(replace(settings, **changed)).deploy(
            published, workload="taxi", provenance=provenance
        )

    return call


def shares(service):
    return dict(service.endpoints["taxi"].traffic_split)


def test_first_version_gets_all_requests_at_a_new_endpoint(service, deploy):
    assert deploy(1, traffic=10) == "Version 1 gets 100% of the requests to the endpoint taxi."
    assert service.version("taxi@v1").artifact_uri == "gs://b/serving/taxi/1"
    assert shares(service) == {"1": 100}


def test_new_version_gets_its_share_and_the_others_the_rest(service, deploy):
    deploy(1)
    deploy(2, traffic=20)
    assert shares(service) == {"1": 80, "2": 20}
    deploy(3, traffic=50, service_account="s@p.iam.gserviceaccount.com")
    assert shares(service) == {"1": 40, "2": 10, "3": 50}
    assert service.endpoints["taxi"].deployed_models[2].service_account == "s@p.iam.gserviceaccount.com"


def test_what_is_made_there_is_encrypted_with_the_workload_s_key(service, deploy, caplog):
    key = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k"
    for version in (1, 2):
        deploy(version, encryption_key=key)
    made = [service.endpoints["taxi"], *service.models["taxi"]]
    assert [each.encryption_spec.kms_key_name for each in made] == [key] * 3
    assert "was made with" not in caplog.text


def test_what_was_made_before_the_key_was_set_keeps_its_own_and_that_is_said(service, deploy, caplog):
    deploy(1)
    deploy(2, encryption_key="projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k")
    made = [service.endpoints["taxi"], *service.models["taxi"]]
    assert [each.encryption_spec.kms_key_name for each in made] == [""] * 3
    for name in ("models/taxi", "endpoints/taxi"):
        assert f"{name} was made with Google's keys, not with cloud.vertex.encryption_key" in caplog.text


@pytest.mark.parametrize("code", [429, 500, 502, 504])
def test_question_without_an_answer_ends_no_deployment(service, deploy, code):
    """It takes a quarter of an hour, in which the client asks every few seconds."""
    service.is_slow = True
    service.fail("GET /ui/.*/operations/", code, times=2)
    assert deploy(1) == "Version 1 gets 100% of the requests to the endpoint taxi."
    assert service.changes() == ["token", "models:upload", "endpoints", "taxi:deployModel"]


def test_operation_that_failed_is_reported_at_once(service, deploy):
    service.is_slow, service.failed = True, ("DeployModelResponse", {"code": 13, "message": "no machines"})
    with pytest.raises(ComponentError, match=r"version 1 is pushed, but not deployed: .* no machines"):
        deploy(1)
    assert service.changes().count("taxi:deployModel") == 1


def test_version_that_no_longer_gets_requests_is_undeployed_and_stays_in_the_registry(service, deploy):
    deploy(1)
    assert "undeployed taxi 1" in deploy(2)
    assert [each.id for each in service.endpoints["taxi"].deployed_models] == ["2"]
    assert [each.artifact_uri[-1] for each in service.models["taxi"]] == ["1", "2"]


def test_version_without_a_share_waits_beside_the_one_that_answers(service, deploy):
    deploy(1)
    deploy(2, traffic=0)
    assert shares(service) == {"1": 100, "2": 0}
    assert len(service.endpoints["taxi"].deployed_models) == 2


def test_model_of_somebody_else_is_left_alone(service, deploy):
    from google.cloud.aiplatform_v1.types import DeployedModel

    deploy(1)
    service.endpoints["taxi"].deployed_models.append(DeployedModel(id="9", model=f"{PLACE}/models/other"))
    deploy(2)
    assert [each.id for each in service.endpoints["taxi"].deployed_models] == ["9", "2"]


def test_endpoint_at_which_another_workload_answers_is_left_to_it(service, deploy):
    from google.cloud.aiplatform_v1.types import DeployedModel, Model

    deploy(1)
    service.models["fares"] = [Model(version_id="1", labels={"slipway-workload": "fares"})]
    endpoint = service.endpoints["taxi"]
    endpoint.deployed_models = [DeployedModel(id="1", model=f"{PLACE}/models/fares@1")]
    with pytest.raises(ComponentError, match=r"models of the workload 'fares' answer at the endpoint taxi"):
        deploy(2)
    assert shares(service) == {"1": 100}
    endpoint.traffic_split = {}
    deploy(2)
    assert shares(service) == {"2": 100}


def test_same_version_is_uploaded_and_deployed_once_and_keeps_its_share(service, deploy):
    deploy(1)
    deploy(2, traffic=20)
    service.requests.clear()
    assert deploy(2, traffic=90) == "Version 2 is already deployed at the endpoint taxi."
    assert service.changes() == ["token"]
    assert shares(service) == {"1": 80, "2": 20}


@pytest.mark.parametrize("kind", [503, 429, "lost", "gateway"])
def test_each_request_in_turn_may_fail_once_and_all_is_done_once(service, deploy, kind):
    deploy(1)
    for pattern in ("GET .*models", "models:upload", "GET .*endpoints", ":deployModel", ":undeployModel"):
        version = len(service.models["taxi"]) + 1
        service.fail(pattern, kind)
        deploy(version)
        assert not any(fault["times"] for fault in service.faults), pattern
        assert shares(service) == {str(version): 100}
        assert [each.id for each in service.endpoints["taxi"].deployed_models] == [str(version)]
    assert len(service.models["taxi"]) == 6


@pytest.mark.parametrize("step", ["upload", "POST .*endpoints$", "deployModel"])
def test_deployment_that_broke_off_is_completed_by_the_next(service, deploy, step):
    service.fail(step, 400)
    with pytest.raises(ComponentError, match="version 7 is pushed, but not deployed") as raised:
        deploy(7)
    assert "resume the run" in raised.value.hint
    deploy(7)
    assert shares(service) == {"7": 100}
    assert len(service.models["taxi"]) == 1


def test_version_that_could_not_be_undeployed_goes_when_the_run_is_resumed(service, deploy):
    deploy(1)
    service.fail(":undeployModel", 400)
    with pytest.raises(
        ComponentError, match="version 2 is deployed, but versions without traffic still hold"
    ):
        deploy(2)
    assert len(service.endpoints["taxi"].deployed_models) == 2
    assert deploy(2) == "Version 2 is already deployed at the endpoint taxi; undeployed taxi 1."
    deploy(3, traffic=0)
    assert deploy(2) == "Version 2 is already deployed at the endpoint taxi."
    assert [each.id for each in service.endpoints["taxi"].deployed_models] == ["2", "3"]


def test_versions_are_of_one_model_with_labels_and_metrics_and_the_newest_is_the_default(service, deploy):
    deploy(1)
    provenance = {"run": "20270101-020304-ab12", "metrics": {"auc": 0.9477}}
    service.fail("GET .*/evaluations", 503)
    deploy(2, provenance)
    deploy(2, provenance)
    newest = service.version("taxi")
    assert newest.version_id == service.version("taxi@v2").version_id == "2"
    assert newest.labels["slipway-run"] == "20270101-020304-ab12"
    assert newest.version_description == "auc 0.9477; run 20270101-020304-ab12"
    assert {name: len(told) for name, told in service.evaluations.items()} == {"taxi@2": 1}
    assert dict(service.evaluations["taxi@2"][0].metrics) == {"auRoc": 0.9477}


def test_metrics_that_the_registry_refuses_keep_no_model_back(service, deploy, caplog):
    service.fail("evaluations:import", 400)
    deploy(1, {"metrics": {"auc": 0.9477}})
    assert shares(service) == {"1": 100}
    assert "did not take the metrics of version 1" in caplog.text


def test_model_of_that_name_that_is_not_the_workloads_gets_no_version(service, deploy):
    from google.cloud.aiplatform_v1.types import Model

    service.models["taxi"] = [Model(version_id="1", version_aliases=["default"])]
    with pytest.raises(ComponentError, match="without the label slipway-workload=taxi") as raised:
        deploy(1)
    assert "give it the label" in raised.value.hint
    assert len(service.models["taxi"]) == 1


def test_version_that_is_deployed_as_a_model_of_its_own_is_not_deployed_again_and_goes_when_idle(
    service, deploy
):
    from google.cloud.aiplatform_v1.types import DeployedModel

    version = 1795222512
    deploy(version)
    model = f"{PLACE}/models/taxi-v{version}"
    earlier = DeployedModel(id=f"{version}", model=model, model_version_id="1")
    service.endpoints["taxi"].deployed_models = [earlier]
    assert deploy(version) == f"Version {version} is already deployed at the endpoint taxi."
    deploy(version + 1)
    assert [each.id for each in service.endpoints["taxi"].deployed_models] == [f"{version + 1}"]


def test_version_of_that_alias_with_other_files_is_not_taken_for_ours(service, deploy):
    deploy(1)
    service.version("taxi").version_aliases = ["v2", "default"]
    with pytest.raises(ComponentError, match=r"taxi@v2 is gs://b/serving/taxi/1, not gs://b/serving/taxi/2"):
        deploy(2)


def test_gateway_that_goes_on_answering_in_place_of_the_service_is_told(service, deploy, monkeypatch):
    monkeypatch.setattr(google_retries, "RETRY_S", 0.1)
    service.fail("GET .*models", "gateway", times=99)
    with pytest.raises(ComponentError, match=r"version 1 is pushed, but not deployed: .* proxy or gateway"):
        deploy(1)


def test_denied_permission_names_the_role(service, deploy):
    service.fail("models", 403)
    with pytest.raises(ComponentError, match="permission denied") as raised:
        deploy(1)
    assert "roles/aiplatform.user in p" in raised.value.hint


def test_missing_and_wrong_credentials_come_with_the_command_to_log_in(service, monkeypatch, tmp_path):
    service.fail("token", 400)
    with pytest.raises(ComponentError, match=r"credentials for push\.endpoint do not work") as raised:
        find_credentials("push.endpoint")
    assert "gcloud auth" in raised.value.hint
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with pytest.raises(ComponentError, match=r"no credentials for push\.endpoint"):
        find_credentials("push.endpoint")


def test_run_that_could_not_deploy_is_refused_before_anything_runs(local_runner, tmp_path, monkeypatch):
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    settings = (
        "push.destination=gs://bucket/taxi",
        "push.endpoint={name: taxi, container: image}",
        "cloud.vertex={project: p, region: europe-west4}",
    )
    words = [word for setting in settings for word in ("--set", setting)]
    refused = local_runner("run", *words, "--output", str(tmp_path / "out"))
    assert "There are no credentials for push.endpoint on this machine." in refused.stderr
    assert refused.returncode != 0
    assert not (tmp_path / "out" / "runs").exists()


def test_rollback_deploys_the_version_that_it_publishes(service, model, base, tmp_path):
    config = small_workload(
        name="taxi",
        push={"destination": base, "endpoint": {"name": "taxi", "container": "image"}},
        cloud={"vertex": {"project": "p", "region": "europe-west4", "endpoint": service.address}},
    )
    publish_to_bucket(model, base=base, provenance={"workload": "taxi"})
    (model / "saved_model.pb").write_bytes(b"worse")
    publish_to_bucket(model, base=base, provenance={"workload": "taxi"})
    done = rollback(config, tmp_path / "output", to=None)
    version = done.published.version
    assert service.version("taxi").artifact_uri == f"{base}/{version}"
    assert "again, instead of" in service.version(f"taxi@v{version}").version_description
    assert shares(service) == {str(version): 100}
