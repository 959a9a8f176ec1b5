"""Gives a function component local files if the service keeps artifacts on gs://. Imports TFX.

Our components read and write plain paths. On this machine, TFX's launcher creates the folders of their
outputs; in a container nothing does, and a gs:// address is not a path.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tfx.dsl.io import fileio
from tfx.utils import io_utils

from slipway.components.errors import ComponentError
from slipway.components.store_address import is_remote
from slipway.pipeline.cloud.container.store_errors import told_store_errors

Artifacts = Mapping[str, Sequence[Any]]


@contextmanager
def local_files(inputs: Artifacts, outputs: Artifacts) -> Iterator[None]:
    """Make every artifact a local folder while a component runs.

    Remote inputs are downloaded first, and the outputs are uploaded at the end; then the artifacts have
    their remote addresses again. Properties that name a place are changed in the same way. If the component
    fails, nothing is uploaded.

    Args:
        inputs, outputs: TFX's artifacts by key; changed while the component runs.

    Raises:
        ComponentError: an input is not there any more, although the service still lists it; or the store
            refuses or does not answer.
    """
    for artifact in _all(outputs):
        if not is_remote(artifact.uri):
            Path(artifact.uri).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="artifacts-") as folder:
        places: dict[str, str] = {}  # by remote address
        for index, artifact in enumerate((*_all(inputs), *_all(outputs))):
            if is_remote(artifact.uri):
                # The last part of an address may mean something to its reader, e.g. a version.
                place = Path(folder, str(index), Path(artifact.uri).name)
                place.mkdir(parents=True)
                places[artifact.uri] = str(place)
        for key, listed in inputs.items():
            for artifact in listed:
                if artifact.uri in places:
                    with told_store_errors(f"its input {key} cannot be copied from {artifact.uri}"):
                        _require_there(key, artifact.uri)
                        io_utils.copy_dir(artifact.uri, places[artifact.uri])
        try:
            for artifact in (*_all(inputs), *_all(outputs)):
                artifact.uri = places.get(artifact.uri, artifact.uri)
                _rename(artifact, places)
            yield
        finally:
            remote = {place: address for address, place in places.items()}
            for artifact in (*_all(inputs), *_all(outputs)):
                artifact.uri = remote.get(artifact.uri, artifact.uri)
                _rename(artifact, remote)
        for artifact in _all(outputs):
            if artifact.uri in places:
                with told_store_errors(f"its output cannot be copied to {artifact.uri}"):
                    io_utils.copy_dir(places[artifact.uri], artifact.uri)


def _all(artifacts: Artifacts) -> list[Any]:
    return [artifact for listed in artifacts.values() for artifact in listed]


def _require_there(key: str, uri: str) -> None:
    """Reject a removed input: a gate would otherwise compare with nothing, and pass."""
    if not fileio.exists(uri):
        raise ComponentError(
            f"its input {key} is gone from the store: there is nothing at {uri}, but the service lists it",
            hint="if an earlier run made it, the next is compared with none after `cloud_runner.py baseline "
            "--clear`, or, for the data that passed last, with --set data_gate.reference=none; if the cache "
            "gave it: --set cloud.cache=false. A lifecycle rule of the bucket must keep what runs look for",
        )


def _rename(artifact: Any, names: Mapping[str, str]) -> None:
    """Replace addresses in an artifact's properties, such as that of the model that a blessing is about."""
    for key in list(artifact.mlmd_artifact.custom_properties):
        text = artifact.get_string_custom_property(key)
        for before, after in names.items():
            if text == before or text.startswith(f"{before}/"):
                artifact.set_string_custom_property(key, after + text.removeprefix(before))
