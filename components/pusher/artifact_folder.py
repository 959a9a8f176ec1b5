"""Makes an artifact's folder available on this machine, even if it is in Cloud Storage."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.components.store_address import GS


@contextlib.contextmanager
def on_this_machine(uri: str) -> Iterator[Path]:
    """Yield the folder for reading, or a temporary copy of it if it is in Cloud Storage.

    Args:
        uri: a folder, or gs://BUCKET/FOLDER. A gs:// folder that does not exist is an empty folder.

    Raises:
        ComponentError: the bucket cannot be used, or an object arrives damaged.
    """
    if not uri.startswith(GS):
        yield Path(uri)
        return
    from slipway.components.pusher.google_folder import Folder

    with tempfile.TemporaryDirectory(prefix="slipway-artifact-") as name:
        target = Path(name).resolve()
        with contextlib.closing(Folder(uri)) as folder:
            for key, stored in folder.list().items():
                if not (target / key).resolve().is_relative_to(target):
                    raise ComponentError(f"{uri} holds an object whose name, {key!r}, leads out of it.")
                folder.fetch(stored, target / key)
        yield target
