"""MLflow: sends a run's parameters, metrics, curves, report, data digests and model by MLflow's REST API.

The REST API is used because MLflow's client library conflicts with TFX's requirements on Python 3.11, and a
dozen requests are enough. https://mlflow.org/docs/latest/rest-api.html
"""

import hashlib
import itertools
import json
import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from slipway.pipeline.report.artifacts import first_json
from slipway.pipeline.runs.outcome import read_stops, read_verdict
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.screen.wording import run_command, summary
from slipway.pipeline.tracking.http_client import AnswerError, HttpClient
from slipway.pipeline.tracking.mlflow_model import register, upload
from slipway.pipeline.tracking.run_facts import (
    Point,
    begin_and_end_ms,
    curves,
    final_metrics,
    parameters,
    run_data,
)
from slipway.pipeline.tracking.tracker import TrackerError

API = "/api/2.0/mlflow"
# MLflow's limits for the items of one request, and for the lengths of names and values.
_MOST_METRICS, _MOST_PARAMETERS, _MOST_DATASETS = 1000, 100, 50
_MOST_VALUE, _MOST_NAME, _MOST_DIGEST = 500, 250, 36
_OTHER_LETTERS = re.compile(r"[^\w\-. /]", re.ASCII)
_CHANGED = "slipway.resumed_with."
_STATUS = {"complete": "FINISHED", "failed": "FAILED", "stopped": "FAILED"}
_T = TypeVar("_T")


def send(record: RunRecord, address: str) -> None:
    """Create the run, or complete the one that an earlier attempt began; see `tracker.Send`.

    Credentials come from MLflow's own variables.
    """
    settings = record.target.settings
    token, user = os.environ.get("MLFLOW_TRACKING_TOKEN"), os.environ.get("MLFLOW_TRACKING_USERNAME")
    client = HttpClient(
        address,
        headers={"Authorization": f"Bearer {token}"} if token else {},
        auth=(user, os.environ.get("MLFLOW_TRACKING_PASSWORD", "")) if user and not token else None,
    )
    experiment = settings.track.experiment if settings else None
    Mlflow(client, experiment or record.workload).send(record)


@dataclass(frozen=True)
class Mlflow:
    """An MLflow tracking server, and the experiment for the runs."""

    client: HttpClient
    experiment: str

    def send(self, record: RunRecord) -> None:
        """Create the run, or complete the one that an earlier attempt began."""
        run, before = self._run(record)
        run_id = run["run_id"]
        self._log(run_id, record, before)
        self._log_data(run_id, record)
        report = record.folder / "report.html"
        if report.is_file():
            upload(self.client, run["artifact_uri"], {"report.html": report})
        if record.pushed is not None:
            version = register(self.client, record, run_id=run_id, artifact_uri=run["artifact_uri"])
            self._post("runs/set-tag", run_id=run_id, key="slipway.registered_version", value=version)
        # Sent last, so that a partially sent run is not shown as finished.
        status = _STATUS.get(record.state, "KILLED")
        self._post("runs/update", run_id=run_id, status=status, end_time=begin_and_end_ms(record)[1])

    def _post(self, path: str, **body: object) -> dict[str, Any]:
        return self.client.call("POST", f"{API}/{path}", body=body)

    def _run(self, record: RunRecord) -> tuple[dict[str, Any], dict[str, Any]]:
        """Find or create the run; return MLflow's description of it, and what was logged before."""
        experiment = self._experiment()
        found = self._post(
            "runs/search",
            experiment_ids=[experiment],
            filter=f"tags.`slipway.run` = '{record.run_id}'",
            max_results=1,
        )
        if runs := found.get("runs"):
            return dict(runs[0]["info"]), dict(runs[0].get("data") or {})
        made = self._post(
            "runs/create",
            experiment_id=experiment,
            run_name=record.run_id,
            start_time=begin_and_end_ms(record)[0],
            tags=_pairs({"slipway.run": record.run_id}),
        )
        return dict(made["run"]["info"]), {}

    def _experiment(self) -> str:
        for _ in range(2):  # another process may create the experiment in between
            query = {"experiment_name": self.experiment}
            try:
                found = self.client.call("GET", f"{API}/experiments/get-by-name", query=query)["experiment"]
            except AnswerError as error:
                if error.code != "RESOURCE_DOES_NOT_EXIST":
                    raise
            else:
                if found.get("lifecycle_stage") == "deleted":
                    raise TrackerError(
                        f"has the experiment {self.experiment!r} as deleted: restore it there, "
                        "or name another in track.experiment"
                    )
                return str(found["experiment_id"])
            try:
                return str(self._post("experiments/create", name=self.experiment)["experiment_id"])
            except AnswerError as error:
                if error.code != "RESOURCE_ALREADY_EXISTS":
                    raise
        raise TrackerError(f"neither finds nor makes the experiment {self.experiment!r}")

    def _log(self, run_id: str, record: RunRecord, before: Mapping[str, Any]) -> None:
        epochs = first_json(record, "ModelRun", "history.json").get("epochs", [])
        # Times are the same at each attempt, so that MLflow keeps a value that is sent twice only once. The
        # curves of a resumed run stay, and MLflow shows its latest final metrics.
        begun, ended = begin_and_end_ms(record)
        points = [_metric(point, ended) for point in final_metrics(record)]
        points += [_metric(point, begun) for point in curves(epochs)]
        for some in _batches(points, _MOST_METRICS):
            self._post("runs/log-batch", run_id=run_id, metrics=some)
        params, changed = _new_and_changed(_by_key(_pairs(parameters(record))), before)
        for pairs in _batches(params, _MOST_PARAMETERS):
            self._post("runs/log-batch", run_id=run_id, params=pairs)
        for pairs in _batches([*_pairs(_tags(record)), *changed], _MOST_PARAMETERS):
            self._post("runs/log-batch", run_id=run_id, tags=pairs)

    def _log_data(self, run_id: str, record: RunRecord) -> None:
        digests = run_data(record)
        datasets = [
            {
                "tags": _pairs({"mlflow.data.context": "training"}),
                "dataset": {
                    "name": name[-_MOST_VALUE:],
                    "digest": digest[:_MOST_DIGEST],
                    "source_type": "local",
                    "source": json.dumps({"uri": name}),
                    # The digest of an object in a bucket is the store's checksum, and the size.
                    "profile": json.dumps({"checksum" if "://" in name else "sha256": digest}),
                },
            }
            for name, digest in digests.items()
        ]
        for some in _batches(datasets, _MOST_DATASETS):
            self._post("runs/log-inputs", run_id=run_id, datasets=some)


def _tags(record: RunRecord) -> dict[str, str]:
    outcome = next(
        iter(summary(record, stops=read_stops(record), verdict=read_verdict(record))), record.state
    )
    tags = {
        "slipway.workload": record.workload,
        "slipway.state": record.state,
        "mlflow.source.name": record.target.again or run_command(record),
        "mlflow.source.type": "JOB",
        "mlflow.note.content": outcome,
    }
    if record.blessed is not None:
        tags["slipway.blessed"] = str(record.blessed).lower()
    if record.pushed is not None:
        tags["slipway.pushed"] = record.pushed["version"]
    digests = run_data(record)
    if digests:
        text = "".join(f"{name}\0{digest}\n" for name, digest in digests.items())
        tags["slipway.data_digest"] = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
    return tags


def _new_and_changed(
    now: Mapping[str, str], before: Mapping[str, Any]
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return the parameters that MLflow does not have yet, and tags for those that have another value now.

    A run may be resumed with other settings, and MLflow refuses to change a parameter.
    """
    there, tags = _by_key(before.get("params", [])), _by_key(before.get("tags", []))
    new = [{"key": key, "value": value} for key, value in now.items() if key not in there]
    changed = [
        {"key": f"{_CHANGED}{key}"[:_MOST_NAME], "value": now.get(key, "null")}
        for key, value in there.items()
        if now.get(key) != value or f"{_CHANGED}{key}" in tags
    ]
    return new, changed


def _by_key(pairs: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {pair["key"]: pair.get("value", "") for pair in pairs}


def _metric(point: Point, at_ms: int) -> dict[str, object]:
    return {"key": _name(point.name), "value": point.value, "timestamp": at_ms, "step": point.step}


def _pairs(texts: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": _name(name), "value": value[:_MOST_VALUE]} for name, value in texts.items()]


def _name(name: str) -> str:
    """Make a name valid for MLflow: only allowed characters, and no path that leads elsewhere."""
    name = _OTHER_LETTERS.sub("_", name)[:_MOST_NAME]
    return (
        name
        if posixpath.normpath(name) == name and not name.startswith(("/", ".."))
        else name.replace("/", "_")
    )


def _batches(items: Iterable[_T], most: int) -> Iterable[Sequence[_T]]:
    left = iter(items)
    while some := list(itertools.islice(left, most)):
        yield some
