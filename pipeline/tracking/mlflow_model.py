"""Registers the pushed model in MLflow: uploads its files and signature, and creates a model version."""

import json
import platform
import uuid
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

import yaml

from slipway.components.errors import ComponentError
from slipway.components.pusher.manifest import contents
from slipway.components.pusher.manifest_contents import Provenance
from slipway.components.pusher.signature import Trust
from slipway.components.pusher.signing_keys import read_verify_key
from slipway.components.pusher.version_store import version_store_at
from slipway.components.pusher.versions import version_number
from slipway.components.saved_model.signatures import SERVE_RAW, SERVING_DEFAULT, PlainTensor
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.tracking.http_client import AnswerError, HttpClient
from slipway.pipeline.tracking.tracker import TrackerError

_API, _FILES = "/api/2.0/mlflow", "/api/2.0/mlflow-artifacts/artifacts"
# The URI scheme of artifacts that the server accepts over HTTP and stores itself, its default.
_PROXIED = "mlflow-artifacts"
_FOLDER, _SAVED_MODEL = "model", "saved_model"
# TensorFlow's names of types -> NumPy's, which MLflow uses, where they differ.
_NUMPY_NAMES = {"float": "float32", "double": "float64", "string": "str", "half": "float16"}


def upload(client: HttpClient, artifact_uri: str, files: Mapping[str, Path | bytes]) -> None:
    """Upload files as artifacts of a run.

    Args:
        files: the name of each artifact, with the file or its content.

    Raises:
        TrackerError: the server does not accept artifacts itself, or did not accept one of these.
        OSError: a file cannot be read.
    """
    place = urlsplit(artifact_uri)
    if place.scheme != _PROXIED:
        raise TrackerError(
            f"leaves artifacts to its clients ({place.scheme or 'a folder'}); start it with "
            "--serve-artifacts and name an experiment made since in track.experiment"
        )
    for name, content in files.items():
        path = f"{_FILES}{quote(place.path)}/{quote(name)}"
        if isinstance(content, bytes):
            client.call("PUT", path, file=content)
        else:
            with content.open("rb") as file:
                # An empty stream would be sent in chunks, which not every server accepts.
                client.call("PUT", path, file=file if content.stat().st_size else b"")


def register(client: HttpClient, record: RunRecord, *, run_id: str, artifact_uri: str) -> str:
    """Register the version that a run has pushed, unless it is already registered.

    The model has the workload's name. A version in an object store is downloaded first. One that is gone, or
    that has no manifest, is not registered.

    Returns:
        MLflow's number of the version, or why there is none.

    Raises:
        TrackerError: the version cannot be read, is damaged or, with `push.verify_key`, is not trusted; or
            the server did not register it.
        OSError: a file cannot be read.
    """
    pushed = record.pushed
    assert pushed is not None  # noqa: S101  (callers check this)
    base, _, name = pushed["path"].rpartition("/")
    none = f"none: {pushed['path']} has no manifest, or is not there"
    if (version := version_number(name)) is None:
        return none
    try:
        store = version_store_at(base, _trust(record))
        if (manifest := store.manifest(version)) is None:
            if version_store_at(base).manifest(version) is None:
                return none
            raise TrackerError(f"was not sent the model: {pushed['path']}: {store.problem(version)}")
        tags = {"slipway.version": pushed["version"], "slipway.digest": manifest.model_digest}
        if there := _registered(client, record.workload, tags):
            return there
        with store.fetched(version) as folder:
            _upload_model(client, folder, manifest.provenance, run_id=run_id, artifact_uri=artifact_uri)
    except ComponentError as error:
        raise TrackerError(f"was not sent the model: {error.message}") from error
    return _register(client, record, tags, run_id=run_id, artifact_uri=artifact_uri)


def _trust(record: RunRecord) -> Trust | None:
    """Return which versions of the workload may be used; None: all whose files match their manifests."""
    settings = record.target.settings
    path = settings.push.verify_key if settings else None
    return Trust(read_verify_key(path), record.workload) if path else None


def _upload_model(
    client: HttpClient, folder: Path, provenance: Provenance, *, run_id: str, artifact_uri: str
) -> None:
    """Upload a version's files, and what MLflow needs to load them."""
    _, sizes = contents(folder)
    files: dict[str, Path | bytes] = {f"{_FOLDER}/{_SAVED_MODEL}/{each}": folder / each for each in sizes}
    about = ml_model(provenance, run_id=run_id, size_bytes=sum(sizes.values()))
    stack = provenance.get("stack", {})
    needed = "".join(f"{each}=={stack[each]}\n" for each in ("tensorflow", "keras") if each in stack)
    upload(
        client,
        artifact_uri,
        files | {f"{_FOLDER}/MLmodel": about.encode(), f"{_FOLDER}/requirements.txt": needed.encode()},
    )


def _register(
    client: HttpClient, record: RunRecord, tags: Mapping[str, str], *, run_id: str, artifact_uri: str
) -> str:
    """Create a version of the workload's model from what was uploaded; return MLflow's number."""
    try:
        client.call("POST", f"{_API}/registered-models/create", body={"name": record.workload})
    except AnswerError as error:
        if error.code != "RESOURCE_ALREADY_EXISTS":
            raise
    made = client.call(
        "POST",
        f"{_API}/model-versions/create",
        body={
            "name": record.workload,
            "source": f"{artifact_uri}/{_FOLDER}",
            "run_id": run_id,
            "tags": [
                {"key": key, "value": value} for key, value in {**tags, "slipway.run": record.run_id}.items()
            ],
        },
    )
    return str(made["model_version"]["version"])


def _registered(client: HttpClient, name: str, tags: Mapping[str, str]) -> str:
    """Return MLflow's number for the version of ours with these tags; empty if it has none."""
    try:
        found = client.call(
            "GET",
            f"{_API}/model-versions/search",
            query={"filter": f"name = '{name}' and tags.`slipway.version` = '{tags['slipway.version']}'"},
        )
    except AnswerError as error:
        if error.code == "RESOURCE_DOES_NOT_EXIST":
            return ""
        raise
    for each in found.get("model_versions", []):
        if tags.items() <= {(tag["key"], tag.get("value", "")) for tag in each.get("tags", [])}:
            return str(each["version"])
    return ""


def ml_model(provenance: Provenance, *, run_id: str, size_bytes: int) -> str:
    """Return the file `MLmodel`, which tells MLflow how to load the model.

    Its signature takes raw columns if the model does, otherwise serialized examples.
    """
    signatures = provenance.get("model", {}).get("signatures", {})
    key = next((each for each in (SERVE_RAW, SERVING_DEFAULT) if each in signatures), "")
    digest = provenance.get("model", {}).get("digest", "")
    document: dict[str, object] = {
        "artifact_path": _FOLDER,
        "run_id": run_id,
        "model_uuid": uuid.uuid5(uuid.NAMESPACE_OID, f"{run_id} {digest}").hex,
        "model_size_bytes": size_bytes,
        "utc_time_created": provenance.get("pushed_at", "")[:19].replace("T", " "),
        "flavors": {},
    }
    if key:
        document["flavors"] = {
            "tensorflow": {
                # MLflow's term for a SavedModel that is called by a signature.
                "model_type": "tf1-estimator",
                "saved_model_dir": _SAVED_MODEL,
                "meta_graph_tags": ["serve"],
                "signature_def_key": key,
                "code": None,
            },
            "python_function": {
                "loader_module": "mlflow.tensorflow",
                "python_version": provenance.get("stack", {}).get("python", platform.python_version()),
            },
        }
        document["signature"] = {
            "inputs": _schema(signatures[key]["inputs"]),
            "outputs": _schema(signatures[key]["outputs"]),
            "params": None,
        }
    return yaml.safe_dump(document, sort_keys=False)


def _schema(tensors: Mapping[str, PlainTensor]) -> str:
    return json.dumps(
        [
            {
                "name": name,
                "type": "tensor",
                "tensor-spec": {
                    "dtype": _NUMPY_NAMES.get(tensor["dtype"], tensor["dtype"]),
                    "shape": [-1 if size is None else size for size in tensor["shape"] or [None]],
                },
            }
            for name, tensor in tensors.items()
        ]
    )
