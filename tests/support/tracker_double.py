"""Doubles of trackers' servers on loopback: they keep what they were sent, and fail as they are told to."""

import contextlib
import json
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit

import loopback


class Collector:
    """Takes any request, and keeps method, path, headers and body of each."""

    def __init__(self):
        self.got, self.address, self.refuses = [], "", {}

    def answer(self, method, path, query, body):
        """Status and document."""
        return 200, {}

    def take(self, method, target, headers, body):
        parts = urlsplit(target)
        path = unquote(parts.path)
        self.got.append((method, path, headers, body))
        for known, refusal in self.refuses.items():
            if known in path:
                return refusal
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        return self.answer(method, path, query, body)

    def paths(self):
        return [path for _, path, _, _ in self.got]


class MlflowDouble(Collector):
    """The part of MLflow's REST API that is used, with its error codes. An external test has the real one."""

    def __init__(self):
        super().__init__()
        self.experiments, self.runs, self.files, self.models, self.versions = {}, {}, {}, [], []
        self.artifacts = "mlflow-artifacts:/{experiment}/{run}/artifacts"

    def answer(self, method, path, query, body):
        if method == "PUT":
            self.files[path.removeprefix("/api/2.0/mlflow-artifacts/artifacts/")] = body
            return 200, {}
        name = path.removeprefix("/api/2.0/mlflow/").replace("/", "_").replace("-", "_")
        return getattr(self, name)(query if method == "GET" else json.loads(body))

    def experiments_get_by_name(self, query):
        found = self.experiments.get(query["experiment_name"])
        return (200, {"experiment": found}) if found else missing()

    def experiments_create(self, body):
        if body["name"] in self.experiments:
            return exists()
        made = {"experiment_id": str(len(self.experiments) + 1), "lifecycle_stage": "active"}
        self.experiments[body["name"]] = made
        return 200, made

    def runs_search(self, body):
        [experiment] = body["experiment_ids"]
        wanted = body["filter"].split("'")[1]
        found = [
            {"info": run["info"], "data": {"params": pairs(run["params"]), "tags": pairs(run["tags"])}}
            for run in self.runs.values()
            if run["tags"].get("slipway.run") == wanted and run["info"]["experiment_id"] == experiment
        ]  # fmt: skip
        return 200, {"runs": found} if found else {}

    def runs_create(self, body):
        run_id, experiment = f"run{len(self.runs)}", body["experiment_id"]
        uri = self.artifacts.format(experiment=experiment, run=run_id)
        info = {"run_id": run_id, "experiment_id": experiment, "artifact_uri": uri, "status": "RUNNING"}
        run = {"info": info, "tags": texts(body["tags"]), "params": {}, "metrics": set(), "datasets": {}}
        self.runs[run_id] = run
        return 200, {"run": {"info": info}}

    def runs_log_batch(self, body):
        run = self.runs[body["run_id"]]
        run["tags"] |= texts(body.get("tags", []))
        for name, value in texts(body.get("params", [])).items():
            if run["params"].setdefault(name, value) != value:
                return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "Changing param values"}
        run["metrics"] |= {tuple(each.values()) for each in body.get("metrics", [])}
        return 200, {}

    def runs_log_inputs(self, body):
        for each in body["datasets"]:
            self.runs[body["run_id"]]["datasets"][each["dataset"]["name"]] = each["dataset"]
        return 200, {}

    def runs_set_tag(self, body):
        self.runs[body["run_id"]]["tags"][body["key"]] = body["value"]
        return 200, {}

    def runs_update(self, body):
        self.runs[body["run_id"]]["info"] |= {"status": body["status"], "end_time": body["end_time"]}
        return 200, {}

    def model_versions_search(self, query):
        name = query["filter"].split("'")[1]
        found = [each for each in self.versions if each["name"] == name]
        return (200, {"model_versions": found} if found else {}) if name in self.models else missing()

    def registered_models_create(self, body):
        if body["name"] in self.models:
            return exists()
        self.models.append(body["name"])
        return 200, {}

    def model_versions_create(self, body):
        made = {**body, "version": str(len(self.versions) + 1)}
        self.versions.append(made)
        return 200, {"model_version": made}


def texts(pairs):
    return {pair["key"]: pair["value"] for pair in pairs}


def pairs(values):
    return [{"key": key, "value": value} for key, value in values.items()]


def missing():
    return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "there is none"}


def exists():
    return 400, {"error_code": "RESOURCE_ALREADY_EXISTS", "message": "it is there"}


@contextlib.contextmanager
def served(double):
    """Serves a double at its `address` until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, document = double.take(self.command, self.path, dict(self.headers), body)
            answer = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = handle_any  # noqa: N815

        def log_message(self, *_):
            pass

    with loopback.running(loopback.Server(("127.0.0.1", 0), Handler)) as double.address:
        yield double
