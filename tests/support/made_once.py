"""Makes expensive things once for all workers of a test run."""

import fcntl
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Shared:
    """A folder that all workers share.

    Args:
        folders: pytest's own; the folders of the workers lie side by side.
        name: of the folder.
    """

    def __init__(self, folders: pytest.TempPathFactory, name: str) -> None:
        own = folders.getbasetemp()
        self._base = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
        self._name = name
        self.folder = self._base / name

    def made(self, make: Callable[[Path], Any]) -> Any:
        """Return what `make(folder)` returned for the first worker; the others wait for it.

        The folder is empty then. Where it raises, the next worker tries again.
        """
        answer = self._base / f"{self._name}.made"
        with self._locked():
            if not answer.exists():
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder.mkdir()
                answer.write_bytes(pickle.dumps(make(self.folder)))
            return pickle.loads(answer.read_bytes())  # noqa: S301 (written by a worker of this run)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._base / f"{self._name}.making").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
