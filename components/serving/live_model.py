"""The version being served: the newest sound one, replaced automatically by newer ones."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from slipway.components.errors import ComponentError
from slipway.components.saved_model.class_names import classes_of
from slipway.components.saved_model.loading import LoadedModel

POLL_S = 2.0
"""How often to look for a newer version."""
LONGEST_PAUSE_S = 300.0
"""A version that could not be loaded is tried again after a pause that doubles, from `POLL_S` up to this."""

_log = logging.getLogger(__name__)


class Papers(Protocol):
    """A version's manifest, as in `slipway.components.pusher.manifest`."""

    @property
    def papers(self) -> Mapping[str, object]:
        """Plain data by name."""


class Versions(Protocol):
    """The versions of a base, as `slipway.components.pusher.version_store` gives them."""

    base: str

    def numbers(self) -> list[int]:
        """The versions, in order."""

    def manifest(self, version: int) -> "Papers | None":
        """Return the version's manifest; None if it cannot be read."""

    def fetched(self, version: int) -> AbstractContextManager[Path]:
        """A version as a folder, whole and checked; raises ComponentError where it is damaged."""


@dataclass(frozen=True)
class Served:
    """A version that answers.

    Attributes:
        classes: names of what its answers are about, in the order of their codes; (): they have none.
    """

    version: int
    model: LoadedModel
    classes: tuple[str, ...] = ()


@dataclass
class _Refused:
    """A version that could not be loaded: when it is tried again, by the clock; what was told of it."""

    next_s: float
    pause_s: float
    told: str
    remedy: str = ""


class LiveModel:
    """Loads the newest sound version, and follows from then on.

    Args:
        versions: where they are.
        tell: gets a line about each change.
        load: makes a model of a version's folder.
        clock: seconds that only grow.

    Raises:
        ComponentError: there is no version that can be served.
    """

    def __init__(
        self,
        versions: Versions,
        *,
        tell: Callable[[str], None],
        load: Callable[[Path], LoadedModel] = LoadedModel,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._versions = versions
        self._tell = tell
        self._load = load
        self._clock = clock
        self._refused: dict[int, _Refused] = {}
        self._served: Served | None = None
        self._stopping = threading.Event()
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self.follow_once()
        if self._served is None:
            raise ComponentError(
                f"{versions.base} has no version that can be served.",
                hint=self._remedy() or "push one, with the command run",
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
                self.follow_once()
            except Exception:  # whatever a base or its network raises: it is looked again
                _log.warning("Cannot look for a newer version.", exc_info=True)

    def follow_once(self) -> None:
        """Looks once for a newer version, and loads it."""
        numbers = self._versions.numbers()
        self._refused = {version: each for version, each in self._refused.items() if version in numbers}
        for version in reversed(numbers):
            if self._served and version == self._served.version:
                return
            refused = self._refused.get(version)
            if refused and self._clock() < refused.next_s:
                continue
            try:
                self._served = self._loaded(version)
            except Exception as error:  # the one before goes on answering
                self._refuse(version, error)
            else:
                self._refused.pop(version, None)
                self._tell(f"Serving version {version}.")
                return

    def _remedy(self) -> str:
        """The remedy for the newest version that could not be loaded; empty: there is none."""
        return self._refused[max(self._refused)].remedy if self._refused else ""

    def _loaded(self, version: int) -> Served:
        with self._versions.fetched(version) as folder:
            manifest = self._versions.manifest(version)
            return Served(version, self._load(folder), classes_of(manifest.papers) if manifest else ())

    def _refuse(self, version: int, error: Exception) -> None:
        # It may be one that is still being copied, or a store that did not answer for a moment.
        before = self._refused.get(version)
        pause_s = min(2 * before.pause_s, LONGEST_PAUSE_S) if before else POLL_S
        told = error.message if isinstance(error, ComponentError) else f"{type(error).__name__}: {error}"
        self._refused[version] = _Refused(
            self._clock() + pause_s, pause_s, told, error.hint if isinstance(error, ComponentError) else ""
        )
        if before is None or before.told != told:
            _log.debug("Version %d cannot be served.", version, exc_info=True)
            self._tell(f"Not serving version {version}, will retry: {told}")
