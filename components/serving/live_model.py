"""The version being served: the newest valid one, replaced automatically by newer ones."""

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from slipway.components.errors import ComponentError
from slipway.components.saved_model.class_names import Classes, classes_of
from slipway.components.saved_model.digest import MANIFEST
from slipway.components.saved_model.loading import LoadedModel

POLL_S = 2.0
"""How often to look for a newer version."""
LONGEST_PAUSE_S = 300.0
"""The longest pause before another try to load a version; it starts at `POLL_S` and doubles."""

END_WAIT_S = 5.0
"""How long a look that has begun is waited for at the end: longer than most models take to load."""

_log = logging.getLogger(__name__)


class Versions(Protocol):
    """The versions of a base, as in `slipway.components.pusher.version_store`."""

    base: str

    def numbers(self) -> list[int]:
        """Return the versions, in order."""

    def fetched(self, version: int) -> AbstractContextManager[Path]:
        """Yield a version as a folder, complete and verified, with its manifest; raise ComponentError if it
        is damaged."""


@dataclass(frozen=True)
class Served:
    """A version that answers requests.

    Attributes:
        classes: names of the classes that its answers refer to, see `classes_of`.
        needed: the columns that have a value in every row.
        dates: the columns of which all texts were ISO dates in training.
    """

    version: int
    model: LoadedModel
    classes: Classes = field(default_factory=dict)
    needed: Collection[str] = ()
    dates: Collection[str] = ()


@dataclass
class _Refused:
    """A version that could not be loaded: the time of the next try, by the clock, and the reported error."""

    next_s: float
    pause_s: float
    told: str
    remedy: str = ""


class LiveModel:
    """Loads the newest valid version, and then follows newer ones.

    Args:
        tell: receives a line about each change.
        load: loads a model from a version's folder.
        clock: monotonic time in seconds.

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
        """Stop following; a look at a store that does not answer is not waited for to its end."""
        self._stopping.set()
        self._follower.join(END_WAIT_S)

    def _follow(self) -> None:
        told = ""
        while not self._stopping.wait(POLL_S):
            try:
                self.follow_once()
                now = ""
            except Exception as error:  # from the base or its network: the next poll tries again
                now = _words(error)
                _log.debug("The versions cannot be listed.", exc_info=True)
            if now and now != told:
                self._tell(f"Cannot look for a newer version, will retry: {now}")
            elif told and not now:
                self._tell("Looking for newer versions again.")
            told = now

    def follow_once(self) -> None:
        """Look once for a newer version, and load it."""
        numbers = self._versions.numbers()
        self._refused = {version: each for version, each in self._refused.items() if version in numbers}
        for version in reversed(numbers):
            if self._served and version == self._served.version:
                return
            refused = self._refused.get(version)
            if refused and self._clock() < refused.next_s:
                continue
            try:
                self._served = loaded(self._versions, version, self._load)
            except Exception as error:  # the previous version goes on answering
                self._refuse(version, error)
            else:
                self._refused.pop(version, None)
                self._tell(f"Serving version {version}.")
                return

    def _remedy(self) -> str:
        """Return the remedy for the newest version that could not be loaded; empty if there is none."""
        return self._refused[max(self._refused)].remedy if self._refused else ""

    def _refuse(self, version: int, error: Exception) -> None:
        # The version may still be being copied, or the store may have been unavailable for a moment.
        before = self._refused.get(version)
        pause_s = min(2 * before.pause_s, LONGEST_PAUSE_S) if before else POLL_S
        told = _words(error)
        self._refused[version] = _Refused(
            self._clock() + pause_s, pause_s, told, error.hint if isinstance(error, ComponentError) else ""
        )
        if before is None or before.told != told:
            _log.debug("Version %d cannot be served.", version, exc_info=True)
            self._tell(f"Not serving version {version}, will retry: {told}")


def loaded(versions: Versions, version: int, load: Callable[[Path], LoadedModel] = LoadedModel) -> Served:
    """Load a version, once it is verified.

    Args:
        load: loads a model from a version's folder.

    Raises:
        ComponentError: the version is damaged, or its model cannot be loaded.
    """
    with versions.fetched(version) as folder:
        # The manifest beside the model that was verified: the one in the base may be another by now.
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return Served(version, load(folder), classes_of(manifest), *_columns(manifest))


def _columns(manifest: Mapping[str, object]) -> tuple[frozenset[str], frozenset[str]]:
    """Return `needed` and `dates`, see `Served`."""
    schema = manifest.get("schema")
    named = [schema.get(key) if isinstance(schema, Mapping) else None for key in ("needed", "dates")]
    needed, dates = (
        frozenset(name for name in each if isinstance(name, str)) if isinstance(each, list) else frozenset()
        for each in named
    )
    return needed, dates


def _words(error: Exception) -> str:
    return error.message if isinstance(error, ComponentError) else f"{type(error).__name__}: {error}"
