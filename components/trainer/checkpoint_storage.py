"""Stores checkpoints in a folder on disk or in an object store. Each file is written whole or not at all."""

import contextlib
import hashlib
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from slipway.components import kept_state
from slipway.components.atomic_file import UNFINISHED, whole_file
from slipway.components.errors import ComponentError
from slipway.components.lock_file import held
from slipway.components.store_address import AZ, speaks_s3
from slipway.components.store_waits import told_wait
from slipway.components.stored_objects import StoredObjects
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.user_model import source_digest

Write = Callable[[BinaryIO], object]

SETTLE_S = 2.0
"""How long to wait after a claim in a store, in seconds: of runs that begin together, the last one has it."""
_OWNERS = "owners"


class Storage(Protocol):
    """A flat folder of files."""

    def names(self) -> list[str]:
        """Return the names of the files."""

    def read(self, name: str) -> bytes:
        """Return the content of a file; raise an OSError if it does not exist."""

    def write(self, name: str, write: Write) -> None:
        """Write a file, or leave the old one unchanged on failure. A written file survives a power loss."""

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""

    def remove_unfinished(self) -> None:
        """Remove unfinished files. Only for the process that writes: another may be in the middle of one."""


def storage(location: str) -> Storage:
    """Return the storage for a location.

    Args:
        location: a path; s3://, minio:// or az://; or `scheme://...` for one of TensorFlow's file systems,
            such as gs://.

    Raises:
        ComponentError: on s3://, minio:// and az://, see `StoredObjects`.
    """
    if speaks_s3(location) or location.startswith(AZ):
        return S3AndAzureStorage(location)
    return ObjectStorage(location) if "://" in location else DiskStorage(Path(location))


def checkpoint_dir(job: TrainingJob, *, run: str = "") -> str | None:
    """Return where the job's checkpoints are kept: its own folder, else the engine's; None: nowhere.

    Below `train.checkpoint.folder`, other data, settings or code have another folder. The engine's is such a
    one already. In a store, so has a run while another one of the same work may be in progress there.

    Args:
        run: names the run, the same in each of its attempts where that is possible.

    Raises:
        ComponentError: the module of the job's model does not exist, or the store cannot be used.
    """
    folder = job.checkpoint.folder
    if folder is None:
        kept = kept_state.state_folder()
        return str(kept) if kept else None
    work = hashlib.sha256(f"{job.identity} {source_digest(job.model)}".encode()).hexdigest()
    own = f"{folder.rstrip('/')}/{work[:16]}"
    if "://" not in own:
        Path(own).mkdir(parents=True, exist_ok=True)
        return own
    # The engine's folder is the same in each attempt at a node; an output's is in those of a service's task.
    owner = hashlib.sha256(str(kept_state.state_folder() or run).encode()).hexdigest()[:16]
    try:
        return _claimed(own, owner)
    except OSError as error:
        raise ComponentError(f"train.checkpoint.folder: {own} cannot be used: {error}") from error


def _claimed(shared: str, owner: str) -> str:
    """Return the folder of a run in a store: the one of all runs of this work, or one beside it.

    A store tells nobody whether the run that has claimed the first is alive. So another one leaves it alone,
    and begins with a copy of the newest checkpoints that are there for this work.
    """
    beside, files = f"{shared}-{owner}", storage(shared)
    own = storage(beside)
    if own.names():  # an earlier attempt went on there
        return beside
    owners = _owners(files)
    if owners in ([], [owner]):
        _write(files, _OWNERS, owner.encode())
        time.sleep(SETTLE_S)
        owners = _owners(files)
    if owners[:1] == [owner]:
        return shared
    others = [files, *(storage(f"{shared}-{other}") for other in owners[1:])]
    _write(files, _OWNERS, "\n".join([*owners, owner]).encode())
    _copy(max(others, key=_newest_step), own)
    return beside


def _owners(files: Storage) -> list[str]:
    """Return who has claimed a folder, and after it who keeps checkpoints of the same work beside it."""
    try:
        return files.read(_OWNERS).decode().split()
    except FileNotFoundError:
        return []


def _newest_step(files: Storage) -> int:
    return max(
        (int(name[5:-5]) for name in files.names() if _is_step(name) and name.endswith(".json")), default=-1
    )


def _copy(files: Storage, own: Storage) -> None:
    for name in sorted(filter(_is_step, files.names()), reverse=True):  # each .npz before its .json
        with contextlib.suppress(FileNotFoundError):  # outdated meanwhile
            _write(own, name, files.read(name))


def _is_step(name: str) -> bool:
    return name.startswith("step-")


def _write(files: Storage, name: str, content: bytes) -> None:
    files.write(name, lambda file: file.write(content))


@contextmanager
def alone(job: TrainingJob) -> Iterator[None]:
    """Hold the job's own folder of checkpoints, if it is on disk: an equal run at the same time shares it.

    Raises:
        ComponentError: another training uses the folder.
    """
    if job.checkpoint.folder is None or job.checkpoint_dir is None or "://" in job.checkpoint_dir:
        yield
        return
    with held(Path(f"{job.checkpoint_dir}.lock")) as is_held:
        if not is_held:
            raise ComponentError(
                f"train.checkpoint.folder: {job.checkpoint_dir} is in use by another training of the same "
                "data and settings",
                hint="wait for it to end, or leave the key out: then each has a folder of its own",
            )
        yield


def forget_checkpoints(job: TrainingJob) -> None:
    """Remove the checkpoints from the job's own folder, which no engine cleans up.

    A later training of the same job then starts from the beginning.
    """
    if job.checkpoint.folder is None or job.checkpoint_dir is None:
        return
    files = storage(job.checkpoint_dir)
    for name in files.names():
        files.remove(name)


class DiskStorage:
    """An existing folder on disk that holds nothing else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        """Return the names of the finished files."""
        return [name for name in self._all_names() if not name.startswith(UNFINISHED)]

    def read(self, name: str) -> bytes:
        """Return the content of a file; raise an OSError if it does not exist."""
        return (self._folder / name).read_bytes()

    def write(self, name: str, write: Write) -> None:
        """Write a file under a temporary name, and rename it once it is on disk."""
        path = self._folder / name
        with whole_file(path, survives_power_loss=True) as partial, partial.open("wb") as file:
            write(file)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        (self._folder / name).unlink(missing_ok=True)

    def remove_unfinished(self) -> None:
        """Remove files that a killed process left half written."""
        for name in self._all_names():
            if name.startswith(UNFINISHED):
                self.remove(name)

    def _all_names(self) -> list[str]:
        return [file.name for file in self._folder.iterdir()]


class ObjectStorage:
    """A folder of an object store, through TensorFlow's file systems; objects are written whole or not."""

    def __init__(self, location: str) -> None:
        import tensorflow as tf  # slow to import, and needed for object stores only

        self._location = location.rstrip("/")
        self._tf = tf

    def names(self) -> list[str]:
        """Return the names of the files."""
        with _as_os_errors(self._tf, self._location):
            if not self._tf.io.gfile.exists(self._location):
                return []
            return list(self._tf.io.gfile.listdir(self._location))

    def read(self, name: str) -> bytes:
        """Return the content of a file; raise an OSError if it does not exist."""
        with (
            _as_os_errors(self._tf, self._location),
            self._tf.io.gfile.GFile(f"{self._location}/{name}", "rb") as file,
        ):
            content: bytes = file.read()
        return content

    def write(self, name: str, write: Write) -> None:
        """Write an object."""
        content = io.BytesIO()  # writing an archive needs seeks, which objects do not support
        write(content)
        with _as_os_errors(self._tf, self._location):
            self._tf.io.gfile.makedirs(self._location)
            with self._tf.io.gfile.GFile(f"{self._location}/{name}", "wb") as file:
                file.write(content.getvalue())

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with _as_os_errors(self._tf, self._location):
            try:
                self._tf.io.gfile.remove(f"{self._location}/{name}")
            except self._tf.errors.NotFoundError:
                return

    def remove_unfinished(self) -> None:
        """Do nothing: objects are never half written."""


@contextmanager
def _as_os_errors(tf: Any, location: str) -> Iterator[None]:
    """Translate TensorFlow's file errors into Python's, and tell of a long wait."""
    try:
        with told_wait(location):
            yield
    except tf.errors.NotFoundError as error:
        raise FileNotFoundError(error.message) from error
    except tf.errors.OpError as error:
        raise OSError(error.message) from error


class S3AndAzureStorage:
    """A folder of S3 or Azure Blob Storage; objects are written whole or not."""

    def __init__(self, location: str) -> None:
        self._objects = StoredObjects(location)

    def names(self) -> list[str]:
        """Return the names of the files."""
        with _refusals_as_os_errors():
            return self._objects.names()

    def read(self, name: str) -> bytes:
        """Return the content of a file; raise an OSError if it does not exist."""
        with _refusals_as_os_errors():
            return self._objects.read(name)

    def write(self, name: str, write: Write) -> None:
        """Write an object."""
        content = io.BytesIO()
        write(content)
        with _refusals_as_os_errors():
            self._objects.write(name, content.getvalue())

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with _refusals_as_os_errors():
            self._objects.remove(name)

    def remove_unfinished(self) -> None:
        """Do nothing: objects are never half written."""


@contextmanager
def _refusals_as_os_errors() -> Iterator[None]:
    """Translate a store's refusals into what the other storages raise."""
    try:
        yield
    except ComponentError as error:
        raise OSError(f"{error.message} {error.hint}".strip()) from error
