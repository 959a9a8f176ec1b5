"""The version that is served: the newest sound one, replaced by itself when another becomes the newest."""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from components.errors import ComponentError, SlipwayError
from components.saved_model.loading import LoadedModel

POLL_S = 2.0
"""How often it is looked for a newer version."""

_log = logging.getLogger(__name__)


class Papers(Protocol):
    """What a version says of itself, as `components.pusher.manifest` has it."""

    @property
    def papers(self) -> Mapping[str, Any]:
        """Plain data by name."""


class Versions(Protocol):
    """The versions of a base, as `components.pusher.shelf` gives them."""

    base: str

    def numbers(self) -> list[int]:
        """The versions, in order."""

    def manifest(self, version: int) -> "Papers | None":
        """What a version says of itself; None where that cannot be read."""

    def fetched(self, version: int) -> AbstractContextManager[Path]:
        """A version as a folder, whole and checked; raises ComponentError where it is damaged."""


@dataclass(frozen=True)
class Served:
    """A version that answers.

    Attributes:
        version: its number.
        model: the version, loaded.
        classes: names of what its answers are about, in the order of their codes; (): they have none.
    """

    version: int
    model: LoadedModel
    classes: tuple[str, ...] = ()


class LiveModel:
    """Loads the newest sound version, and follows from then on.

    Args:
        versions: where they are.
        tell: gets a line about each change.

    Raises:
        ComponentError: there is no version that can be served.
    """

    def __init__(self, versions: Versions, *, tell: Callable[[str], None]) -> None:
        self._versions = versions
        self._tell = tell
        self._refused: set[int] = set()
        self._served: Served | None = None
        self._stopping = threading.Event()
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self._follow_once()
        if self._served is None:
            raise ComponentError(
                f"{versions.base} holds no version that can be served.",
                hint="push one: python local_runner.py run",
            )
        self._follower.start()

    @property
    def served(self) -> Served:
        """The version that answers now."""
        assert self._served is not None  # noqa: S101  (the constructor made sure)
        return self._served

    def close(self) -> None:
        """Stops following."""
        self._stopping.set()
        self._follower.join()

    def _follow(self) -> None:
        while not self._stopping.wait(POLL_S):
            try:
                self._follow_once()
            except (SlipwayError, OSError) as error:
                _log.warning("Cannot look for a newer version: %s", error)

    def _follow_once(self) -> None:
        for version in reversed(self._versions.numbers()):
            if self._served and version == self._served.version:
                return
            if version in self._refused:
                continue
            try:
                with self._versions.fetched(version) as folder:
                    manifest = self._versions.manifest(version)
                    classes = tuple(manifest.papers.get("classes", ())) if manifest else ()
                    self._served = Served(version, LoadedModel(folder), classes)
            except ComponentError as error:
                # It stays what it is: a version does not change. The one before goes on answering.
                self._refused.add(version)
                self._tell(f"Not serving version {version}: {error.message}")
            else:
                self._tell(f"Serving version {version}.")
                return
