"""Stores checkpoints in a folder on disk or in an object store. A file is there whole or not at all."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from slipway.components import kept_state
from slipway.components.trainer.job import TrainingJob
from slipway.components.whole_file import UNFINISHED, whole_file

Write = Callable[[BinaryIO], object]


class Storage(Protocol):
    """A flat folder of files."""

    def names(self) -> list[str]:
        """The files that are there."""

    def read(self, name: str) -> bytes:
        """The content of a file; an OSError where there is none."""

    def write(self, name: str, write: Write) -> None:
        """Writes a file, or leaves what was there; when it returns, the file survives a loss of power."""

    def remove(self, name: str) -> None:
        """Removes a file; nothing where there is none."""

    def remove_unfinished(self) -> None:
        """Removes unfinished files. Only for the process that writes: it may be in the middle of one."""


def storage(location: str) -> Storage:
    """The storage of a folder.

    Args:
        location: a path; or `scheme://...`, for TensorFlow's file systems, of which gs:// is one.
    """
    return ObjectStorage(location) if "://" in location else DiskStorage(Path(location))


def checkpoint_dir(job: TrainingJob) -> str | None:
    """Where the job's checkpoints lie: in the folder for them, else where the engine keeps them."""
    folder = job.checkpoint.folder
    if folder is None:
        kept = kept_state.state_folder()
        return str(kept) if kept else None
    own = f"{folder.rstrip('/')}/{job.identity[:16]}"
    if "://" not in own:
        Path(own).mkdir(parents=True, exist_ok=True)
    return own


def forget_checkpoints(job: TrainingJob) -> None:
    """Removes them where the engine does not: a later training of the same job begins at the beginning."""
    if job.checkpoint.folder is None or job.checkpoint_dir is None:
        return
    files = storage(job.checkpoint_dir)
    for name in files.names():
        files.remove(name)


class DiskStorage:
    """An existing folder on disk that nothing else is kept in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        """The files that are there; those that are not finished are left out."""
        return [name for name in self._all_names() if not name.startswith(UNFINISHED)]

    def read(self, name: str) -> bytes:
        """The content of a file; an OSError where there is none."""
        return (self._folder / name).read_bytes()

    def write(self, name: str, write: Write) -> None:
        """Writes a file under another name, and renames it when it is on the disk."""
        path = self._folder / name
        with whole_file(path, survives_power_loss=True) as partial, partial.open("wb") as file:
            write(file)

    def remove(self, name: str) -> None:
        """Removes a file; nothing where there is none."""
        (self._folder / name).unlink(missing_ok=True)

    def remove_unfinished(self) -> None:
        """Removes what a process that was killed has left half written."""
        for name in self._all_names():
            if name.startswith(UNFINISHED):
                self.remove(name)

    def _all_names(self) -> list[str]:
        return [file.name for file in self._folder.iterdir()]


class ObjectStorage:
    """A folder of an object store, through TensorFlow's file systems; an object is written whole or not."""

    def __init__(self, location: str) -> None:
        import tensorflow as tf  # where there are no checkpoints in a store, nobody waits for this

        self._location = location.rstrip("/")
        self._tf = tf

    def names(self) -> list[str]:
        """The files that are there."""
        with _as_os_errors(self._tf):
            if not self._tf.io.gfile.exists(self._location):
                return []
            return list(self._tf.io.gfile.listdir(self._location))

    def read(self, name: str) -> bytes:
        """The content of a file; an OSError where there is none."""
        with _as_os_errors(self._tf), self._tf.io.gfile.GFile(f"{self._location}/{name}", "rb") as file:
            content: bytes = file.read()
        return content

    def write(self, name: str, write: Write) -> None:
        """Writes an object."""
        content = io.BytesIO()  # archives are written with seeks, which objects do not know
        write(content)
        with _as_os_errors(self._tf):
            self._tf.io.gfile.makedirs(self._location)
            with self._tf.io.gfile.GFile(f"{self._location}/{name}", "wb") as file:
                file.write(content.getvalue())

    def remove(self, name: str) -> None:
        """Removes a file; nothing where there is none."""
        with _as_os_errors(self._tf):
            try:
                self._tf.io.gfile.remove(f"{self._location}/{name}")
            except self._tf.errors.NotFoundError:
                return

    def remove_unfinished(self) -> None:
        """Does nothing: an object is there whole or not at all."""


@contextmanager
def _as_os_errors(tf: Any) -> Iterator[None]:
    """TensorFlow's errors of files, as Python's."""
    try:
        yield
    except tf.errors.NotFoundError as error:
        raise FileNotFoundError(error.message) from error
    except tf.errors.OpError as error:
        raise OSError(error.message) from error
