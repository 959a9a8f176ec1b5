"""Parses the paths of TF Serving's REST API. Pure.

A path is matched as received, without decoding, joining or look-ups, so it cannot be used to reach anything
else.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from slipway.components.saved_model.signatures import Signature, TensorInfo
from slipway.components.serving.limits import MAX_QUOTED
from slipway.components.serving.request_decoding import RequestError

_PATH = re.compile(
    r"/v1/models/(?P<name>[A-Za-z0-9_-]{1,63})(?:/versions/(?P<version>[0-9]{1,19}))?"
    r"(?P<verb>/metadata|:predict)?",
    re.ASCII,
)
_METHODS: Mapping[str, str] = {"": "GET", "/metadata": "GET", ":predict": "POST"}


@dataclass(frozen=True)
class Route:
    """A parsed request line.

    Attributes:
        verb: empty for the status, `/metadata` or `:predict`.
        version: the requested version; None: the one that is served.
    """

    verb: str
    version: int | None


def route(method: str, target: str, *, name: str) -> Route:
    """Parse a request line.

    Args:
        method: GET or POST.
        target: the path as received, with its query.
        name: of the model that is served.

    Raises:
        RequestError: the path does not exist (404), or not for this method (405).
    """
    found = _PATH.fullmatch(target.partition("?")[0])
    if found is None:
        raise RequestError(f"Malformed request: {method} {target[:MAX_QUOTED]}", status=404)
    version = int(found["version"]) if found["version"] else None
    if found["name"] != name:
        which = f"Specific({found['name']}, {version})" if version else f"Latest({found['name']})"
        raise RequestError(f"Servable not found for request: {which}", status=404)
    verb = found["verb"] or ""
    if _METHODS[verb] != method:
        raise RequestError(f"Method {method} is not allowed here; use {_METHODS[verb]}.", status=405)
    return Route(verb, version)


def status_document(version: int) -> dict[str, object]:
    """Return the response to a status request."""
    return {
        "model_version_status": [
            {
                "version": str(version),
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
        ]
    }


def metadata_document(name: str, version: int, signatures: Mapping[str, Signature]) -> dict[str, object]:
    """Return the response to a metadata request: the model's signatures."""
    definitions = {
        each: {
            "inputs": {key: _tensor(value) for key, value in signature.inputs.items()},
            "outputs": {key: _tensor(value) for key, value in signature.outputs.items()},
            "method_name": "tensorflow/serving/predict",
        }
        for each, signature in signatures.items()
    }
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(version)},
        "metadata": {"signature_def": {"signature_def": definitions}},
    }


def _tensor(tensor: TensorInfo) -> dict[str, object]:
    sizes = [-1 if size is None else size for size in tensor.shape or ()]
    return {
        "dtype": f"DT_{tensor.dtype.upper()}",
        "tensor_shape": {
            "dim": [{"size": str(size), "name": ""} for size in sizes],
            "unknown_rank": tensor.shape is None,
        },
        "name": "",
    }
